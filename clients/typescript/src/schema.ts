// Written by generate.mjs from the API document. Do not edit.

export interface paths {
    "/api/v1/account": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns the caller's account.
         * @description For the page of the account. Has the profile, the addresses, the time of registration, and in `deletion` what the user would lose with the account.
         *
         *     Requires the token of the user.
         */
        get: operations["getAccount"];
        put?: never;
        post?: never;
        /**
         * Deletes the account and all personal data. Requires a recent sign-in.
         * @description Requires a sign-in within the last ten minutes, otherwise 403 `step_up_required`. Accepts no parameters. The points of an account with an email address are parked for it; the points of an account without one, and all coins, are lost. Show `deletion` of `getAccount` before. An email address that is added first keeps the points, and `exchangeCoins` makes points of coins where the operator set a rate.
         *
         *     Requires the token of the user.
         */
        delete: operations["deleteAccount"];
        options?: never;
        head?: never;
        /**
         * Changes the profile fields that are sent.
         * @description Fields that are not sent stay. An empty text clears a field. Nickname and signature are screened.
         *
         *     Requires the token of the user.
         */
        patch: operations["updateAccount"];
        trace?: never;
    };
    "/api/v1/account/address": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sets the phone number or email address. Requires a recent sign-in and a code for `address`.
         * @description Request a code for the new address with `purpose: "address"` first. Requires a sign-in within the last ten minutes.
         *
         *     Requires the token of the user.
         */
        post: operations["changeAddress"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/account/export": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Exports all data stored about the caller. Only one export runs at a time.
         * @description For users who want a copy of their data. Works for suspended users too.
         *
         *     Requires the token of the user.
         */
        get: operations["exportAccount"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/account/identities": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Adds an identity at another service. Requires a recent sign-in and a proof of the identity.
         * @description Requires the token of the user.
         */
        post: operations["linkIdentity"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/account/identities/{provider}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Removes an identity while another way to sign in remains. Signs out other devices.
         * @description Requires the token of the user.
         */
        delete: operations["unlinkIdentity"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/auth/identity": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Exchanges a proof of identity for a token. Creates the account if needed.
         * @description No token required. An invalid one counts as none.
         */
        post: operations["signInByIdentity"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/auth/login": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Exchanges an email address and its code for a token. Creates the account if needed.
         * @description Second step of signing in by email. `device` names the device in the list of devices. The first sign-in creates the account and brings the points of a new user.
         *
         *     No token required. An invalid one counts as none.
         */
        post: operations["signInByEmail"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/auth/logout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Signs out the device that a token belongs to.
         * @description The token is the credential. Send it as a parameter or in a header; of several the valid one counts.
         */
        post: operations["signOut"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/auth/refresh": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replaces a token. For a short time the old token returns the same new token.
         * @description Call it when a token has few days left. The old token works for some more seconds (by default 30), in which this returns the same successor; a later use ends the whole sign-in. After some months (by default 180 days) a new code is needed.
         *
         *     The token is the credential. Send it as a parameter or in a header; of several the valid one counts.
         */
        post: operations["refreshToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/auth/send-code": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sends a code by email.
         * @description First step of signing in by email. The code has eight digits and is by default valid for ten minutes and for five attempts. The email is Chinese, or English with an `Accept-Language` that prefers English or names no Chinese.
         *
         *     No token required. An invalid one counts as none.
         */
        post: operations["sendEmailCode"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/auth/tokens": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the devices that are signed in.
         * @description Requires the token of the user.
         */
        get: operations["listDevices"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/auth/tokens/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Signs out a device.
         * @description Requires the token of the user.
         */
        delete: operations["signOutDevice"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/changes": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns what changed since a cursor: sessions, history, notifications, preferences, balances and deletions.
         * @description Requires the token of the user.
         */
        get: operations["listChanges"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/devices": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the caller's apps that get pushes, newest first.
         * @description Requires the token of the user.
         */
        get: operations["listPushDevices"];
        put?: never;
        /**
         * Registers the app of this device for pushes, or moves it to the caller.
         * @description At each start of the app, because services replace tokens.
         *
         *     Requires the token of the user.
         */
        post: operations["registerPushDevice"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/devices/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        /**
         * Removes one of the caller's apps from pushes.
         * @description Requires the token of the user.
         */
        delete: operations["removePushDevice"];
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/hexagrams": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the sixty-four hexagrams with their judgements.
         * @description Classical texts are public and change only with a release: keep them for a day, and ask again with `If-None-Match`.
         *
         *     No token required. An invalid one counts as none.
         */
        get: operations["listHexagrams"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/hexagrams/{number}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns a hexagram with all its classical texts.
         * @description The text of the hexagram, the commentaries and six lines, with 用九 or 用六. `plain` is a sentence in the language of `Accept-Language`.
         *
         *     No token required. An invalid one counts as none.
         */
        get: operations["getHexagram"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/interpretations/{traceId}/rating": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Rates one of the caller's interpretations, in place of an earlier rating.
         * @description Thumbs up or down with an optional note, which is screened.
         *
         *     Requires the token of the user.
         */
        put: operations["rateInterpretation"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/invite": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns the caller's invite code and the points it has earned.
         * @description Requires the token of the user.
         */
        get: operations["getInvite"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/invite/redeem": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Redeems another user's invite code, once and within the first days. Both users get points.
         * @description Once, within the first days after the registration.
         *
         *     Requires the token of the user.
         */
        post: operations["redeemInvite"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/notifications": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the caller's notifications, newest first, without the kinds that are switched off.
         * @description The inbox. Pass `nextCursor` as `cursor` for the next page. Works for suspended users too.
         *
         *     Requires the token of the user.
         */
        get: operations["listNotifications"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/notifications/{id}/read": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Marks a notification as read. A later request keeps the first `readAt`.
         * @description Requires the token of the user.
         */
        patch: operations["markNotificationRead"];
        trace?: never;
    };
    "/api/v1/notifications/mark-all-read": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Marks all notifications as read, including kinds that are switched off.
         * @description Requires the token of the user.
         */
        patch: operations["markAllNotificationsRead"];
        trace?: never;
    };
    "/api/v1/notifications/stream": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Streams new notifications and changed balances while the app is open, as events.
         * @description Starts with an `open` event holding the current state, then sends each new notification and balance change. An event's id is the position after it: send the last one as `Last-Event-ID` to resume. After the restore of a backup that id is 410: load the app's data again and open the stream without it.
         *
         *     Requires the token of the user.
         */
        get: operations["streamNotifications"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/notifications/unread-count": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns the number of unread notifications.
         * @description For the badge of the inbox.
         *
         *     Requires the token of the user.
         */
        get: operations["countUnreadNotifications"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/orders": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the caller's orders, newest first.
         * @description Requires the token of the user.
         */
        get: operations["listOrders"];
        put?: never;
        /**
         * Creates an order to pay. Returns the same order again for a few minutes.
         * @description `channel` chooses how to pay, `client` where the buyer pays with WeChat. Pass the answer to the SDK of the channel: `orderString` for Alipay, `payment` for the others. 502 to 504 may be repeated.
         *
         *     Requires the token of the user.
         */
        post: operations["createOrder"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/orders/{orderNo}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns an order.
         * @description Requires the token of the user.
         */
        get: operations["getOrder"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/orders/{orderNo}/confirm": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Asks the provider about an order and credits it if it is paid.
         * @description A hint after the buyer has returned: the server asks the provider and credits by its reply. 202 `pending` until the order is paid; repeat it after some seconds. Orders are credited without it too.
         *
         *     Requires the token of the user.
         */
        post: operations["confirmOrder"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/orders/{orderNo}/sandbox-pay": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Pays an order in the sandbox.
         * @description For the development of apps: stands for the SDK of a channel. Only in the sandbox, if the operator has set `payment.sandbox_buyers`.
         *
         *     Requires the token of the user.
         */
        post: operations["payOrderInSandbox"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/payment/account-token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns the token that the app passes to a store, so that a purchase names the caller.
         * @description Pass `accountToken` to StoreKit as `appAccountToken`, `obfuscatedAccountId` to Google Play Billing as `setObfuscatedAccountId`, before the purchase.
         *
         *     Requires the token of the user.
         */
        get: operations["getStoreAccountToken"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/points": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns the caller's point balance.
         * @description Points pay for castings and further interpretations.
         *
         *     Requires the token of the user.
         */
        get: operations["pointBalance"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/points/exchange": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Exchanges coins for points, at the operator's rate.
         * @description 409 `not_configured` if the operator set no rate. `listProducts` returns the rate as `pointsPerCoin`.
         *
         *     Requires the token of the user.
         */
        post: operations["exchangeCoins"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/points/ledger": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the entries of the caller's point ledger, newest first.
         * @description Requires the token of the user.
         */
        get: operations["listPointEntries"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/preferences": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns the caller's language, time zone and notification settings.
         * @description Language, time zone, day rule and kinds of notifications, for the settings of the app.
         *
         *     Requires the token of the user.
         */
        get: operations["getPreferences"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        /**
         * Changes the preferences that are sent and returns all of them.
         * @description Requires the token of the user.
         */
        patch: operations["updatePreferences"];
        trace?: never;
    };
    "/api/v1/products": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the products for sale, and what a casting and a use cost.
         * @description For the shop of the app. Names follow `Accept-Language`. May be kept for a minute, and is confirmed by its `ETag`.
         *
         *     No token required. An invalid one counts as none.
         */
        get: operations["listProducts"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/purchases": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the caller's purchases in app stores, newest first.
         * @description Requires the token of the user.
         */
        get: operations["listPurchases"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/purchases/apple": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Credits a purchase in the App Store, once. Report it again until the answer is 200.
         * @description Send the `jwsRepresentation` of the transaction. After 200 finish the transaction in the app. 202: the buyer has not paid yet. 404: the purchase belongs to another account. 409: finish it, nothing is credited. Repeat after 5xx and 422 `unknown_package`.
         *
         *     Requires the token of the user.
         */
        post: operations["reportApplePurchase"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/purchases/google": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Asks Google Play about a purchase and credits it, once. The service consumes it.
         * @description Send product id and purchase token. The service consumes the purchase. 202: the buyer has not paid yet. 404: the purchase belongs to another account. Repeat after 5xx and 422 `unknown_package`.
         *
         *     Requires the token of the user.
         */
        post: operations["reportGooglePurchase"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sessions": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the caller's sessions, newest first.
         * @description For the history of the app. Pass `nextCursor` as `cursor` for the next page; it is null on the last one.
         *
         *     Requires the token of the user.
         */
        get: operations["listSessions"];
        put?: never;
        /**
         * Casts a hexagram for a question and spends the points for it.
         * @description The main operation of the app. Costs points, which include the first interpretation. Send an `Idempotency-Key`, so that a repeated request does not cast twice. `castAt` and `timeZone` are the client's own and affect no order.
         *
         *     Requires the token of the user.
         */
        post: operations["castSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sessions/{id}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns one session with its interpretations.
         * @description Requires the token of the user.
         */
        get: operations["getSession"];
        put?: never;
        post?: never;
        /**
         * Deletes a session. Only its non-personal data is kept.
         * @description Requires the token of the user.
         */
        delete: operations["deleteSession"];
        options?: never;
        head?: never;
        /**
         * Sets or deletes the title and the note of a session.
         * @description Requires the token of the user.
         */
        patch: operations["annotateSession"];
        trace?: never;
    };
    "/api/v1/sessions/{id}/card.svg": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Draws a session as a picture for sharing, without the question unless it is asked for.
         * @description A picture without personal data unless `question` asks for it. Its `ETag` changes when the session does.
         *
         *     Requires the token of the user.
         */
        get: operations["drawSessionCard"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/api/v1/sessions/{id}/interpretation": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Interprets a session, as JSON or events. Later requests return the newest interpretation.
         * @description With `Accept: text/event-stream`, the text arrives while it is written. The call goes on when the connection is lost: repeat the request to continue, with the last event's id as `Last-Event-ID`. `again` buys another interpretation. Eight requests may listen to one call.
         *
         *     Requires the token of the user.
         */
        post: operations["interpretSession"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/identity": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Exchanges a proof of identity by Apple, Google, WeChat or the carrier for a token.
         * @deprecated
         * @description Deprecated: use `signInByIdentity` (`POST /api/v1/auth/identity`) instead.
         *
         *     No token required. An invalid one counts as none.
         */
        post: operations["signInByIdentityV0"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/login": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Exchanges a phone number and its code for a token.
         * @description Second step of signing in by phone. The first sign-in registers the user. Keep the token of the response and send it as `Authorization: Bearer <token>`. Full-width digits, spaces and hyphens in the code are accepted.
         *
         *     No token required. An invalid one counts as none.
         */
        post: operations["signInByPhone"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/logout": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Signs out the device that a token belongs to.
         * @deprecated
         * @description Deprecated: use `signOut` (`POST /api/v1/auth/logout`) instead.
         *
         *     The token is the credential. Send it as a parameter or in a header; of several the valid one counts.
         */
        post: operations["signOutV0"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/refresh-token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Replaces a token. For a short time the old token returns the same new token.
         * @deprecated
         * @description Deprecated: use `refreshToken` (`POST /api/v1/auth/refresh`) instead.
         *
         *     The token is the credential. Send it as a parameter or in a header; of several the valid one counts.
         */
        post: operations["refreshTokenV0"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/send-code": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sends a sign-in code by SMS.
         * @description First step of signing in by phone. The code has six digits and is by default valid for five minutes and for five attempts. With `purpose`, a signed-in user gets a code for another address or for a cancellation. 503: nothing was sent. 504: the message may still arrive, and its code is valid.
         *
         *     No token required. An invalid one counts as none.
         */
        post: operations["sendSmsCode"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/auth/validate-token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Returns the state of a token. Extends a token that expires soon.
         * @description For the start of the app. A token with few days left (by default seven) is extended (`refreshed: true`, the same token). An invalid token is `valid: false` and no error.
         *
         *     The token is the credential. Send it as a parameter or in a header; of several the valid one counts.
         */
        post: operations["validateToken"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/coin/balance": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns the user's coin balance.
         * @description Coins pay for the uses of the first generation, points for sessions. Users read their own balance; administrators name a user.
         *
         *     Requires the token of the user or of an administrator. Requests of administrators are audited. Roles: support, owner.
         */
        get: operations["coinBalance"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/coin/balance/phone": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns the coin balance of the user with this phone number.
         * @deprecated
         * @description Deprecated: use `coinBalance` (`GET /coin/balance`) instead.
         *
         *     Requires the token of the user or of an administrator. Requests of administrators are audited. Roles: support, owner.
         */
        get: operations["coinBalanceByPhone"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/coin/consume": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Spends the coins for one use. The server sets the price.
         * @description Call it once for each use, with an `Idempotency-Key`. The server sets the price; 402 `insufficient_coins` changes nothing.
         *
         *     Requires the token of the user.
         */
        post: operations["consumeCoins"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/coin/consume/phone": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Spends the coins for one use. The server sets the price.
         * @deprecated
         * @description Deprecated: use `consumeCoins` (`POST /coin/consume`) instead.
         *
         *     Requires the token of the user.
         */
        post: operations["consumeCoinsByPhone"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/coin/history": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the changes of the coin balance, newest first.
         * @description Requires the token of the user.
         */
        get: operations["listCoinChanges"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/coin/reset": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sets the balance to 0. Requires a recent sign-in or a `code`; from an administrator, a reason.
         * @description A step of a cancellation: the coins are lost, so show the balance before. A code that was sent to the user's own address serves all requests of one cancellation; a wrong one is 403.
         *
         *     Requires the token of the user or of an administrator. Requests of administrators are audited. Role: owner.
         */
        post: operations["resetCoins"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/coin/reset/phone": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Sets the balance to 0. Requires a recent sign-in or a `code`; from an administrator, a reason.
         * @deprecated
         * @description Deprecated: use `resetCoins` (`POST /coin/reset`) instead.
         *
         *     Requires the token of the user or of an administrator. Requests of administrators are audited. Role: owner.
         */
        post: operations["resetCoinsByPhone"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/content-moderation/check-question": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Checks whether a question is allowed.
         * @description For a hint while the user types. Castings and interpretations are screened anyway.
         *
         *     Requires the token of the user or of an administrator. Requests of administrators are audited. Roles: moderator, owner.
         */
        post: operations["checkQuestion"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/divination-history/count/{phoneNumber}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns the number of the caller's history records.
         * @description Requires the token of the user.
         */
        get: operations["countHistory"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/divination-history/deactivate-all": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Hides all of the caller's history records. They are deleted some weeks later.
         * @description A step of a cancellation. The records are deleted later, by default after 30 days; until then `restoreHistory` shows them again.
         *
         *     Requires the token of the user.
         */
        post: operations["deactivateHistory"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/divination-history/delete": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Deletes history records by their record ids.
         * @description Accepts up to 100 ids. Deletes at once and for good. Unknown and hidden ids are not counted.
         *
         *     Requires the token of the user.
         */
        post: operations["deleteHistory"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/divination-history/get": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Lists the caller's history records, newest first.
         * @description With `page` and `size` one page, without them up to 1000 records and 8 MiB. `total` counts all.
         *
         *     Requires the token of the user.
         */
        post: operations["listHistory"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/divination-history/restore-all": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Shows hidden history records again, for a cancellation that was not completed.
         * @description Requires the token of the user.
         */
        post: operations["restoreHistory"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/divination-history/save": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Saves a history record, or changes the fields that are sent of an existing one.
         * @description For apps that cast on the device and keep a copy here. `localRecordId` identifies the record; saving it again changes the fields that are sent. `jsonData` is returned byte for byte.
         *
         *     Requires the token of the user.
         */
        post: operations["saveHistory"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/divination-history/save-batch": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Saves up to 100 history records at once, each as `save` does and with its own result. Repeating it changes nothing more.
         * @description Requires the token of the user.
         */
        post: operations["saveHistoryBatch"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/divination/enhanced": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Interprets a casting, as JSON or, with `Accept: text/event-stream`, as events.
         * @description For castings that are not sessions. With `Accept: text/event-stream`, the text arrives as events; closing the stream cancels the call. Use `interpretSession` for castings of the current generation.
         *
         *     Requires the token of the user.
         */
        post: operations["interpretCasting"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/divination/records/phone/{phoneNumber}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the interpretations of the user with this phone number, newest first.
         * @description Requires the token of the user or of an administrator. Requests of administrators are audited. Roles: support, owner.
         */
        get: operations["listInterpretationsByPhone"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/divination/records/trace/{traceId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns one interpretation.
         * @description Requires the token of the user or of an administrator. Requests of administrators are audited. Roles: support, owner.
         */
        get: operations["getInterpretation"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/divination/records/user/{userId}": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the user's interpretations, newest first.
         * @description Requires the token of the user or of an administrator. Requests of administrators are audited. Roles: support, owner.
         */
        get: operations["listInterpretations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/divination/records/user/{userId}/daterange": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the user's interpretations in a time range, newest first.
         * @description Requires the token of the user or of an administrator. Requests of administrators are audited. Roles: support, owner.
         */
        get: operations["listInterpretationsBetween"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/divination/stats/user/{userId}/count": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns the number of the user's interpretations.
         * @description Requires the token of the user or of an administrator. Requests of administrators are audited. Roles: support, owner.
         */
        get: operations["countInterpretations"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/feedback": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Submits feedback. Anonymous callers have a lower limit.
         * @description With a token the staff can reply, and the user gets a notification.
         *
         *     No token required. An invalid one counts as none.
         */
        post: operations["sendFeedback"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/healthz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns 200 while the process is alive.
         * @description No token required. One that is sent is ignored.
         */
        get: operations["getHealth"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/llm/chat": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Returns the language model's reply to a conversation, as JSON or, with `stream`, as events.
         * @description In the format of OpenAI's chat completions. With `stream: true`, the provider's chunks are passed on and `[DONE]` ends the stream; closing it cancels the call.
         *
         *     Requires the token of the user.
         */
        post: operations["chat"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/notifications/all": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the newest 1000 broadcasts; for a user, the newest notifications of the inbox.
         * @deprecated
         * @description Deprecated: use `listNotifications` (`GET /api/v1/notifications`) instead.
         *
         *     No token required. An invalid one counts as none.
         */
        get: operations["listNotificationsV0"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/notifications/latest": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns the newest broadcast; for a user, the newest since the registration.
         * @deprecated
         * @description Deprecated: use `listNotifications` (`GET /api/v1/notifications`) instead.
         *
         *     No token required. An invalid one counts as none.
         */
        get: operations["latestNotificationV0"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/payment/account-token": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns the token that the app passes to a store, so that a purchase names the caller.
         * @deprecated
         * @description Deprecated: use `getStoreAccountToken` (`GET /api/v1/payment/account-token`) instead.
         *
         *     Requires the token of the user.
         */
        get: operations["getStoreAccountTokenV0"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/payment/gateway/order": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Creates an order to pay. Returns the same order again for a few minutes.
         * @deprecated
         * @description Deprecated: use `createOrder` (`POST /api/v1/orders`) instead.
         *
         *     Requires the token of the user.
         */
        get: operations["createOrderByGetV0"];
        put?: never;
        /**
         * Creates an order to pay. Returns the same order again for a few minutes.
         * @deprecated
         * @description Deprecated: use `createOrder` (`POST /api/v1/orders`) instead.
         *
         *     Requires the token of the user.
         */
        post: operations["createOrderV0"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/payment/orders": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the caller's orders, newest first.
         * @deprecated
         * @description Deprecated: use `listOrders` (`GET /api/v1/orders`) instead.
         *
         *     Requires the token of the user.
         */
        get: operations["listOrdersV0"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/payment/products": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Lists the products for sale, and what a casting and a use cost.
         * @deprecated
         * @description Deprecated: use `listProducts` (`GET /api/v1/products`) instead.
         *
         *     No token required. An invalid one counts as none.
         */
        get: operations["listProductsV0"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/payment/purchases/apple": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Credits a purchase in the App Store, once. Report it again until the answer is 200.
         * @deprecated
         * @description Deprecated: use `reportApplePurchase` (`POST /api/v1/purchases/apple`) instead.
         *
         *     Requires the token of the user.
         */
        post: operations["reportApplePurchaseV0"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/payment/purchases/google": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Asks Google Play about a purchase and credits it, once. The service consumes it.
         * @deprecated
         * @description Deprecated: use `reportGooglePurchase` (`POST /api/v1/purchases/google`) instead.
         *
         *     Requires the token of the user.
         */
        post: operations["reportGooglePurchaseV0"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/payment/update-balance": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Confirms a payment with the provider and credits it. Administrators credit reviewed orders.
         * @description A hint after the buyer has returned: the server asks the provider and credits by its reply. 202 `pending` until the order is paid.
         *
         *     Requires the token of the user or of an administrator. Requests of administrators are audited. Role: owner.
         */
        post: operations["confirmPayment"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/readyz": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns 200 while the service can write to its database.
         * @description No token required. One that is sent is ignored.
         */
        get: operations["getReadiness"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/user/nickname": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Changes the nickname.
         * @deprecated
         * @description Deprecated: use `updateAccount` (`PATCH /api/v1/account`) instead.
         *
         *     Requires the token of the user.
         */
        put: operations["updateNickname"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/user/profile": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns the user's profile.
         * @deprecated
         * @description Deprecated: use `getAccount` (`GET /api/v1/account`) instead.
         *
         *     Requires the token of the user or of an administrator. Requests of administrators are audited. Roles: support, owner.
         */
        get: operations["getProfile"];
        /**
         * Changes the profile fields that are sent.
         * @deprecated
         * @description Deprecated: use `updateAccount` (`PATCH /api/v1/account`) instead.
         *
         *     Requires the token of the user.
         */
        put: operations["updateProfile"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/user/signature": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        /**
         * Changes the signature.
         * @deprecated
         * @description Deprecated: use `updateAccount` (`PATCH /api/v1/account`) instead.
         *
         *     Requires the token of the user.
         */
        put: operations["updateSignature"];
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/version/check": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        get?: never;
        put?: never;
        /**
         * Checks whether a client should or must update.
         * @description For the start of the app: tells whether an update exists and whether the client must install it.
         *
         *     No token required. An invalid one counts as none.
         */
        post: operations["checkVersion"];
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
    "/version/latest": {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        /**
         * Returns the newest release of the app.
         * @description For the page that offers the download. May be kept for a minute.
         *
         *     No token required. An invalid one counts as none.
         */
        get: operations["latestVersion"];
        put?: never;
        post?: never;
        delete?: never;
        options?: never;
        head?: never;
        patch?: never;
        trace?: never;
    };
}
export type webhooks = Record<string, never>;
export interface components {
    schemas: {
        /** @description An account. */
        Account: {
            /** @example 1990-05-17 */
            birthday: string | null;
            /**
             * Format: int64
             * @description The balance of coins, used by the first API generation.
             * @example 0
             */
            coins: number;
            /**
             * Format: date-time
             * @example 2026-01-02T03:04:05.678Z
             */
            createdAt: string;
            deletion: components["schemas"]["AccountDeletion"];
            /** @example li.ming@example.com */
            email: string | null;
            gender: components["schemas"]["Gender"];
            /** @example 10001 */
            id: string;
            /** @description The identities at other services with which the user can sign in. */
            identities: components["schemas"]["LinkedIdentity"][];
            /** @example 青山 */
            nickname: string;
            /** @example 13800138000 */
            phoneNumber: string | null;
            /**
             * Format: int64
             * @description The balance of points, which pay for castings.
             * @example 100
             */
            points: number;
            /** @example 心静则明 */
            signature: string;
        };
        /** @description The effect that a deletion of the account would have on the balances, to be shown before it. */
        AccountDeletion: {
            /**
             * Format: int64
             * @description Coins that would be lost.
             * @example 0
             */
            coinsLost: number;
            /**
             * Format: int64
             * @description Points that would be parked for the email address, for the next account with it.
             * @example 100
             */
            pointsKept: number;
            /**
             * Format: int64
             * @description Points that would be lost, because the account has no email address.
             * @example 0
             */
            pointsLost: number;
        };
        /** @description The token that the app passes to a store, so that a purchase names its user. */
        AccountToken: {
            /**
             * @description `appAccountToken` of `StoreKit`.
             * @example 7e3fb20b-4cdb-47cc-936d-99d65f608138
             */
            accountToken: string;
            /**
             * @description `setObfuscatedAccountId` of Google Play Billing.
             * @example 7e3fb20b4cdb47cc936d99d65f608138
             */
            obfuscatedAccountId: string;
        };
        /** @description Notifications, newest first, and how many there are. */
        AllNotifications: {
            items: components["schemas"]["Notification"][];
            /**
             * Format: int64
             * @example 1
             */
            total: number;
        };
        /** @description A published version of the app. */
        AppRelease: {
            /** @example https://app.example.com/download */
            downloadUrl: string | null;
            /** @example 3 */
            id: string;
            /**
             * @description Clients older than this release must update.
             * @example false
             */
            isRequired: boolean;
            /** @example 修复若干问题。 */
            notes: string;
            /**
             * @description Null for all platforms.
             * @example android
             */
            platform: string | null;
            /**
             * Format: date-time
             * @example 2026-01-02T03:04:05.678Z
             */
            publishedAt: string;
            /** @example 2.3.1 */
            version: string;
            /**
             * Format: int64
             * @example 231
             */
            versionCode: number;
        };
        /**
         * @description The counted unit.
         * @example coin
         * @enum {string}
         */
        Asset: "coin" | "point";
        /**
         * @description State of the backups: `none` before the first one, `off` if they are disabled.
         * @example current
         * @enum {string}
         */
        BackupState: "current" | "old" | "failed" | "none" | "off";
        /** @description The balances of the caller. */
        Balances: {
            /**
             * Format: int64
             * @example 0
             */
            coins: number;
            /**
             * Format: int64
             * @example 100
             */
            points: number;
        };
        /**
         * @description Outcome of a model call: `cancelled` if the client disconnected, `interrupted` if the service stopped.
         * @example succeeded
         * @enum {string}
         */
        CallStatus: "running" | "succeeded" | "failed" | "cancelled" | "interrupted";
        /**
         * @description The colours of a picture.
         * @example auto
         * @enum {string}
         */
        CardTheme: "light" | "dark" | "auto";
        /**
         * @description The method of casting.
         * @example numbers
         * @enum {string}
         */
        CastingMethod: "three_coins" | "yarrow_stalks" | "manual" | "time" | "numbers";
        /**
         * @description The changes of the caller's data since a cursor. Apply `deleted` first, then everything else in place of what the
         *     app has stored.
         */
        ChangeSet: {
            /** @description Absent if unchanged. */
            balances?: components["schemas"]["Balances"];
            /**
             * @description Send it as `since` of the next request.
             * @example AAABm3c2dQAAAAAAAAAAAA
             */
            cursor: string;
            deleted: components["schemas"]["DeletedItem"][];
            /** @description New and changed history records. */
            history: components["schemas"]["HistoryRecord"][];
            /**
             * @description True if there are more changes: ask for them at once.
             * @example false
             */
            more: boolean;
            /**
             * @description New notifications and those that were read, of all kinds: the app hides the kinds that the preferences switch
             *     off, and those that have expired.
             */
            notifications: components["schemas"]["Notification"][];
            /** @description Absent if unchanged. */
            preferences?: components["schemas"]["Preferences"];
            /** @description Absent unless all notifications were marked as read. */
            readMark?: components["schemas"]["ReadMark"];
            /** @description New and changed sessions, as in the list of sessions. */
            sessions: components["schemas"]["Session"][];
        };
        /** @description The price of a product in a payment channel. */
        ChannelPrice: {
            /** @description The `channel` of an order. */
            channel: components["schemas"]["PaymentChannel"];
            /** @example CNY */
            currency: string;
            /**
             * @description In `currency`, with two decimals.
             * @example 6.00
             */
            price: string;
        };
        /**
         * @description What the six-line method (六爻) derives from the lines and their time.
         * @example {
         *       "bodyBranch": "未",
         *       "echoes": [],
         *       "lines": [
         *         {
         *           "becomes": null,
         *           "branch": "子",
         *           "clashEffect": null,
         *           "dayClash": false,
         *           "dayCombination": false,
         *           "dayEffect": "扶",
         *           "element": "water",
         *           "growthStage": "帝旺",
         *           "hidden": null,
         *           "kin": "兄弟",
         *           "monthBreak": false,
         *           "monthCombination": false,
         *           "position": 1,
         *           "role": null,
         *           "spirit": "朱雀",
         *           "stem": "庚",
         *           "strength": "旺",
         *           "value": 7,
         *           "void": false
         *         },
         *         {
         *           "becomes": null,
         *           "branch": "寅",
         *           "clashEffect": null,
         *           "dayClash": false,
         *           "dayCombination": false,
         *           "dayEffect": "生",
         *           "element": "wood",
         *           "growthStage": "沐浴",
         *           "hidden": null,
         *           "kin": "子孙",
         *           "monthBreak": false,
         *           "monthCombination": false,
         *           "position": 2,
         *           "role": "世",
         *           "spirit": "勾陈",
         *           "stem": "庚",
         *           "strength": "相",
         *           "value": 8,
         *           "void": false
         *         },
         *         {
         *           "becomes": null,
         *           "branch": "辰",
         *           "clashEffect": null,
         *           "dayClash": false,
         *           "dayCombination": false,
         *           "dayEffect": "耗",
         *           "element": "earth",
         *           "growthStage": "帝旺",
         *           "hidden": {
         *             "branch": "午",
         *             "dayClash": true,
         *             "dayCombination": false,
         *             "dayEffect": "克",
         *             "element": "fire",
         *             "growthStage": "胎",
         *             "kin": "妻财",
         *             "monthBreak": true,
         *             "monthCombination": false,
         *             "stem": "戊",
         *             "strength": "死",
         *             "void": false
         *           },
         *           "kin": "官鬼",
         *           "monthBreak": false,
         *           "monthCombination": false,
         *           "position": 3,
         *           "role": null,
         *           "spirit": "螣蛇",
         *           "stem": "庚",
         *           "strength": "囚",
         *           "value": 8,
         *           "void": false
         *         },
         *         {
         *           "becomes": null,
         *           "branch": "申",
         *           "clashEffect": null,
         *           "dayClash": false,
         *           "dayCombination": false,
         *           "dayEffect": "泄",
         *           "element": "metal",
         *           "growthStage": "死",
         *           "hidden": null,
         *           "kin": "父母",
         *           "monthBreak": false,
         *           "monthCombination": false,
         *           "position": 4,
         *           "role": null,
         *           "spirit": "白虎",
         *           "stem": "戊",
         *           "strength": "休",
         *           "value": 8,
         *           "void": true
         *         },
         *         {
         *           "becomes": null,
         *           "branch": "戌",
         *           "clashEffect": null,
         *           "dayClash": false,
         *           "dayCombination": false,
         *           "dayEffect": "耗",
         *           "element": "earth",
         *           "growthStage": "帝旺",
         *           "hidden": null,
         *           "kin": "官鬼",
         *           "monthBreak": false,
         *           "monthCombination": false,
         *           "position": 5,
         *           "role": "应",
         *           "spirit": "玄武",
         *           "stem": "戊",
         *           "strength": "囚",
         *           "value": 7,
         *           "void": false
         *         },
         *         {
         *           "becomes": {
         *             "branch": "卯",
         *             "clash": false,
         *             "combination": false,
         *             "dayClash": false,
         *             "dayCombination": false,
         *             "dayEffect": "生",
         *             "element": "wood",
         *             "growthStage": "沐浴",
         *             "kin": "子孙",
         *             "monthBreak": false,
         *             "monthCombination": false,
         *             "progress": null,
         *             "relation": "化泄",
         *             "stage": "死",
         *             "stem": "辛",
         *             "strength": "相",
         *             "void": false
         *           },
         *           "branch": "子",
         *           "clashEffect": null,
         *           "dayClash": false,
         *           "dayCombination": false,
         *           "dayEffect": "扶",
         *           "element": "water",
         *           "growthStage": "帝旺",
         *           "hidden": null,
         *           "kin": "兄弟",
         *           "monthBreak": false,
         *           "monthCombination": false,
         *           "position": 6,
         *           "role": null,
         *           "spirit": "青龙",
         *           "stem": "戊",
         *           "strength": "旺",
         *           "value": 6,
         *           "void": false
         *         }
         *       ],
         *       "marks": [
         *         {
         *           "element": null,
         *           "kind": "独发",
         *           "positions": [
         *             6
         *           ],
         *           "waitsFor": null
         *         }
         *       ],
         *       "moment": {
         *         "clock": "civil",
         *         "dayStart": "23:00",
         *         "local": "2026-01-02T11:04:05+08:00",
         *         "lunar": {
         *           "day": 14,
         *           "isLeapMonth": false,
         *           "month": 11,
         *           "year": 2025
         *         },
         *         "nearBoundary": [],
         *         "pillars": {
         *           "day": "丙子",
         *           "hour": "甲午",
         *           "month": "戊子",
         *           "year": "乙巳"
         *         },
         *         "void": [
         *           "申",
         *           "酉"
         *         ]
         *       },
         *       "palace": {
         *         "element": "water",
         *         "stage": "second",
         *         "trigram": "坎"
         *       },
         *       "pattern": null,
         *       "relatingLines": [
         *         {
         *           "branch": "子",
         *           "element": "water",
         *           "kin": "兄弟",
         *           "stem": "庚"
         *         },
         *         {
         *           "branch": "寅",
         *           "element": "wood",
         *           "kin": "子孙",
         *           "stem": "庚"
         *         },
         *         {
         *           "branch": "辰",
         *           "element": "earth",
         *           "kin": "官鬼",
         *           "stem": "庚"
         *         },
         *         {
         *           "branch": "未",
         *           "element": "earth",
         *           "kin": "官鬼",
         *           "stem": "辛"
         *         },
         *         {
         *           "branch": "巳",
         *           "element": "fire",
         *           "kin": "妻财",
         *           "stem": "辛"
         *         },
         *         {
         *           "branch": "卯",
         *           "element": "wood",
         *           "kin": "子孙",
         *           "stem": "辛"
         *         }
         *       ],
         *       "relatingPattern": null,
         *       "stars": [
         *         {
         *           "branches": [
         *             "亥",
         *             "酉"
         *           ],
         *           "star": "天乙贵人"
         *         },
         *         {
         *           "branches": [
         *             "巳"
         *           ],
         *           "star": "禄神"
         *         },
         *         {
         *           "branches": [
         *             "午"
         *           ],
         *           "star": "羊刃"
         *         },
         *         {
         *           "branches": [
         *             "申"
         *           ],
         *           "star": "文昌"
         *         },
         *         {
         *           "branches": [
         *             "寅"
         *           ],
         *           "star": "驿马"
         *         },
         *         {
         *           "branches": [
         *             "酉"
         *           ],
         *           "star": "桃花"
         *         },
         *         {
         *           "branches": [
         *             "子"
         *           ],
         *           "star": "将星"
         *         },
         *         {
         *           "branches": [
         *             "辰"
         *           ],
         *           "star": "华盖"
         *         },
         *         {
         *           "branches": [
         *             "巳"
         *           ],
         *           "star": "劫煞"
         *         },
         *         {
         *           "branches": [
         *             "亥"
         *           ],
         *           "star": "天医"
         *         },
         *         {
         *           "branches": [
         *             "未"
         *           ],
         *           "star": "天喜"
         *         }
         *       ]
         *     }
         */
        Chart: {
            /**
             * @description The branch of the body of the hexagram (卦身).
             * @example 子
             * @enum {string}
             */
            bodyBranch: "子" | "丑" | "寅" | "卯" | "辰" | "巳" | "午" | "未" | "申" | "酉" | "戌" | "亥";
            /** @description Trigrams that repeat or reverse by the change. */
            echoes: {
                /**
                 * @description The half of the hexagram.
                 * @example lower
                 * @enum {string}
                 */
                half: "lower" | "upper";
                /**
                 * @description Repeating (伏吟) or reversing (反吟).
                 * @example 伏吟
                 * @enum {string}
                 */
                kind: "伏吟" | "卦反吟" | "爻反吟";
            }[];
            /** @description The six lines, bottom up. */
            lines: {
                becomes: null | {
                    /**
                     * @description The branch (纳甲).
                     * @example 子
                     * @enum {string}
                     */
                    branch: "子" | "丑" | "寅" | "卯" | "辰" | "巳" | "午" | "未" | "申" | "酉" | "戌" | "亥";
                    /** @description The new branch clashes with the old one. */
                    clash: boolean;
                    /** @description The new branch combines with the old one. */
                    combination: boolean;
                    /** @description The day clashes with it (日冲). */
                    dayClash?: boolean;
                    /** @description The day combines with it (日合). */
                    dayCombination?: boolean;
                    /**
                     * @description The effect of the day's element; `冲` if the day has the same element and strikes the line.
                     * @example 生
                     * @enum {string}
                     */
                    dayEffect?: "生" | "扶" | "克" | "泄" | "耗" | "冲";
                    /**
                     * @description The element.
                     * @example wood
                     * @enum {string}
                     */
                    element: "wood" | "fire" | "earth" | "metal" | "water";
                    /**
                     * @description The stage of growth (长生十二宫) on this day.
                     * @example 长生
                     * @enum {string}
                     */
                    growthStage?: "长生" | "沐浴" | "冠带" | "临官" | "帝旺" | "衰" | "病" | "死" | "墓" | "绝" | "胎" | "养";
                    /**
                     * @description The kin (六亲) to the palace.
                     * @example 父母
                     * @enum {string}
                     */
                    kin: "父母" | "兄弟" | "官鬼" | "妻财" | "子孙";
                    /** @description The month clashes with it (月破). */
                    monthBreak?: boolean;
                    /** @description The month combines with it (月合). */
                    monthCombination?: boolean;
                    progress: null | ("进神" | "退神");
                    /**
                     * @description The effect on the line that changed.
                     * @example 回头生
                     * @enum {string}
                     */
                    relation: "回头生" | "回头克" | "化泄" | "化耗" | "比和";
                    /**
                     * @description The stage of growth of the old line on the new branch, such as 墓 (化墓) and 绝 (化绝).
                     * @example 长生
                     * @enum {string}
                     */
                    stage: "长生" | "沐浴" | "冠带" | "临官" | "帝旺" | "衰" | "病" | "死" | "墓" | "绝" | "胎" | "养";
                    /**
                     * @description The stem (纳甲).
                     * @example 甲
                     * @enum {string}
                     */
                    stem: "甲" | "乙" | "丙" | "丁" | "戊" | "己" | "庚" | "辛" | "壬" | "癸";
                    /**
                     * @description The strength in the month (旺相休囚死). This and the following members are absent if the time is unknown.
                     * @example 旺
                     * @enum {string}
                     */
                    strength?: "旺" | "相" | "休" | "囚" | "死";
                    /** @description The branch is void on this day (旬空). */
                    void?: boolean;
                };
                /**
                 * @description The branch (纳甲).
                 * @example 子
                 * @enum {string}
                 */
                branch: "子" | "丑" | "寅" | "卯" | "辰" | "巳" | "午" | "未" | "申" | "酉" | "戌" | "亥";
                clashEffect: null | ("暗动" | "日破");
                /** @description The day clashes with it (日冲). */
                dayClash?: boolean;
                /** @description The day combines with it (日合). */
                dayCombination?: boolean;
                /**
                 * @description The effect of the day's element; `冲` if the day has the same element and strikes the line.
                 * @example 生
                 * @enum {string}
                 */
                dayEffect?: "生" | "扶" | "克" | "泄" | "耗" | "冲";
                /**
                 * @description The element.
                 * @example wood
                 * @enum {string}
                 */
                element: "wood" | "fire" | "earth" | "metal" | "water";
                /**
                 * @description The stage of growth (长生十二宫) on this day.
                 * @example 长生
                 * @enum {string}
                 */
                growthStage?: "长生" | "沐浴" | "冠带" | "临官" | "帝旺" | "衰" | "病" | "死" | "墓" | "绝" | "胎" | "养";
                hidden: null | {
                    /**
                     * @description The branch (纳甲).
                     * @example 子
                     * @enum {string}
                     */
                    branch: "子" | "丑" | "寅" | "卯" | "辰" | "巳" | "午" | "未" | "申" | "酉" | "戌" | "亥";
                    /** @description The day clashes with it (日冲). */
                    dayClash?: boolean;
                    /** @description The day combines with it (日合). */
                    dayCombination?: boolean;
                    /**
                     * @description The effect of the day's element; `冲` if the day has the same element and strikes the line.
                     * @example 生
                     * @enum {string}
                     */
                    dayEffect?: "生" | "扶" | "克" | "泄" | "耗" | "冲";
                    /**
                     * @description The element.
                     * @example wood
                     * @enum {string}
                     */
                    element: "wood" | "fire" | "earth" | "metal" | "water";
                    /**
                     * @description The stage of growth (长生十二宫) on this day.
                     * @example 长生
                     * @enum {string}
                     */
                    growthStage?: "长生" | "沐浴" | "冠带" | "临官" | "帝旺" | "衰" | "病" | "死" | "墓" | "绝" | "胎" | "养";
                    /**
                     * @description The kin (六亲) to the palace.
                     * @example 父母
                     * @enum {string}
                     */
                    kin: "父母" | "兄弟" | "官鬼" | "妻财" | "子孙";
                    /** @description The month clashes with it (月破). */
                    monthBreak?: boolean;
                    /** @description The month combines with it (月合). */
                    monthCombination?: boolean;
                    /**
                     * @description The stem (纳甲).
                     * @example 甲
                     * @enum {string}
                     */
                    stem: "甲" | "乙" | "丙" | "丁" | "戊" | "己" | "庚" | "辛" | "壬" | "癸";
                    /**
                     * @description The strength in the month (旺相休囚死). This and the following members are absent if the time is unknown.
                     * @example 旺
                     * @enum {string}
                     */
                    strength?: "旺" | "相" | "休" | "囚" | "死";
                    /** @description The branch is void on this day (旬空). */
                    void?: boolean;
                };
                /**
                 * @description The kin (六亲) to the palace.
                 * @example 父母
                 * @enum {string}
                 */
                kin: "父母" | "兄弟" | "官鬼" | "妻财" | "子孙";
                /** @description The month clashes with it (月破). */
                monthBreak?: boolean;
                /** @description The month combines with it (月合). */
                monthCombination?: boolean;
                /** @description From 1 at the bottom to 6. */
                position: number;
                role: null | ("世" | "应");
                /**
                 * @description The spirit (六神). Absent if the time is unknown.
                 * @example 青龙
                 * @enum {string}
                 */
                spirit?: "青龙" | "朱雀" | "勾陈" | "螣蛇" | "白虎" | "玄武";
                /**
                 * @description The stem (纳甲).
                 * @example 甲
                 * @enum {string}
                 */
                stem: "甲" | "乙" | "丙" | "丁" | "戊" | "己" | "庚" | "辛" | "壬" | "癸";
                /**
                 * @description The strength in the month (旺相休囚死). This and the following members are absent if the time is unknown.
                 * @example 旺
                 * @enum {string}
                 */
                strength?: "旺" | "相" | "休" | "囚" | "死";
                /** @description 6 old yin, 7 young yang, 8 young yin, 9 old yang. */
                value: number;
                /** @description The branch is void on this day (旬空). */
                void?: boolean;
            }[];
            /** @description Relations of several lines, such as 三合 and 独发. */
            marks: {
                element: null | ("wood" | "fire" | "earth" | "metal" | "water");
                /**
                 * @description The relation.
                 * @example 三合
                 * @enum {string}
                 */
                kind: "三合" | "半合" | "三刑" | "六害" | "独发" | "独静" | "随官入墓";
                /** @description The lines, ascending from 1 at the bottom. A line counts also for the branch into which it changes. */
                positions: number[];
                waitsFor: null | ("子" | "丑" | "寅" | "卯" | "辰" | "巳" | "午" | "未" | "申" | "酉" | "戌" | "亥");
            }[];
            moment: null | {
                /**
                 * @description The clock that days and hours follow.
                 * @example civil
                 * @enum {string}
                 */
                clock: "civil";
                /**
                 * @description The day rule of the casting.
                 * @example 23:00
                 * @enum {string}
                 */
                dayStart: "23:00" | "00:00";
                /**
                 * Format: date-time
                 * @description RFC 3339 with the offset of the time zone.
                 */
                local: string;
                /** @description The date in China's lunar calendar, of the day that the day rule gives. */
                lunar: {
                    /** @description From 1 to 30. */
                    day: number;
                    /** @description True in a leap month. */
                    isLeapMonth: boolean;
                    /** @description From 1 to 12. A leap month has the number of the month before it. */
                    month: number;
                    /** @description The Gregorian year in which the lunar year begins. */
                    year: number;
                };
                /** @description Pillars that would be others with a clock three minutes off. The day also while the two day rules disagree. */
                nearBoundary: ("year" | "month" | "day" | "hour")[];
                /** @description The four pillars (四柱). */
                pillars: {
                    /** @description Stem and branch. */
                    day: string;
                    /** @description Stem and branch. */
                    hour: string;
                    /** @description Stem and branch. */
                    month: string;
                    /** @description Stem and branch. */
                    year: string;
                };
                /** @description The two void branches of the day (旬空). */
                void: ("子" | "丑" | "寅" | "卯" | "辰" | "巳" | "午" | "未" | "申" | "酉" | "戌" | "亥")[];
            };
            /**
             * @description The reason for a chart without a time. Otherwise absent.
             * @example unknown
             * @enum {string}
             */
            momentMissing?: "unknown" | "out_of_range";
            /** @description The palace (八宫) of the primary hexagram. */
            palace: {
                /**
                 * @description The element.
                 * @example wood
                 * @enum {string}
                 */
                element: "wood" | "fire" | "earth" | "metal" | "water";
                /**
                 * @description The place of the hexagram in the palace.
                 * @example pure
                 * @enum {string}
                 */
                stage: "pure" | "first" | "second" | "third" | "fourth" | "fifth" | "wandering" | "returning";
                /**
                 * @description The trigram that names it.
                 * @example 乾
                 * @enum {string}
                 */
                trigram: "乾" | "兑" | "离" | "震" | "巽" | "坎" | "艮" | "坤";
            };
            pattern: null | ("六冲" | "六合");
            relatingLines: null | {
                /**
                 * @description The branch (纳甲).
                 * @example 子
                 * @enum {string}
                 */
                branch: "子" | "丑" | "寅" | "卯" | "辰" | "巳" | "午" | "未" | "申" | "酉" | "戌" | "亥";
                /**
                 * @description The element.
                 * @example wood
                 * @enum {string}
                 */
                element: "wood" | "fire" | "earth" | "metal" | "water";
                /**
                 * @description The kin (六亲) to the palace.
                 * @example 父母
                 * @enum {string}
                 */
                kin: "父母" | "兄弟" | "官鬼" | "妻财" | "子孙";
                /**
                 * @description The stem (纳甲).
                 * @example 甲
                 * @enum {string}
                 */
                stem: "甲" | "乙" | "丙" | "丁" | "戊" | "己" | "庚" | "辛" | "壬" | "癸";
            }[];
            relatingPattern: null | ("六冲" | "六合");
            /** @description Stars of the day and the month (神煞); empty if the time is unknown. */
            stars: {
                /** @description The branches. */
                branches: ("子" | "丑" | "寅" | "卯" | "辰" | "巳" | "午" | "未" | "申" | "酉" | "戌" | "亥")[];
                /**
                 * @description The star.
                 * @example 天乙贵人
                 * @enum {string}
                 */
                star: "天乙贵人" | "禄神" | "羊刃" | "文昌" | "驿马" | "桃花" | "将星" | "华盖" | "劫煞" | "天医" | "天喜";
            }[];
        };
        /** @description The only choice of a chat completion. */
        ChatChoice: {
            /**
             * @description `stop`, or `length` if the token limit cut the text.
             * @example stop
             */
            finish_reason: string;
            /**
             * Format: int32
             * @example 0
             */
            index: number;
            message: components["schemas"]["ChatMessage"];
        };
        /** @description A chat completion as the provider sent it; it may have more members. */
        ChatCompletion: {
            choices: components["schemas"]["ChatChoice"][];
            /**
             * Format: int64
             * @description Seconds since 1970.
             * @example 1767225600
             */
            created: number;
            /** @example chatcmpl-4bf92f3577b34da6a3ce929d0e0e4736 */
            id: string;
            /** @example deepseek-chat */
            model: string;
            /** @example chat.completion */
            object: string;
            /** @description Omitted if the provider did not report usage. */
            usage?: components["schemas"]["ChatUsage"];
        };
        /** @description A chunk of a chat completion, as OpenAI's API sends it. */
        ChatCompletionChunk: {
            choices: {
                /** @description The next piece of the reply. */
                delta: {
                    /** @example 万事起头难 */
                    content?: string;
                    /** @example 屯卦在问什么？ */
                    reasoning_content?: string;
                    /** @example assistant */
                    role?: string;
                };
                /** @example stop */
                finish_reason?: string | null;
                /**
                 * Format: int32
                 * @example 0
                 */
                index: number;
            }[];
            /**
             * Format: int64
             * @example 1767225600
             */
            created: number;
            /** @example chatcmpl-4bf92f3577b34da6a3ce929d0e0e4736 */
            id: string;
            /** @example builtin-1 */
            model: string;
            /** @example chat.completion.chunk */
            object: string;
        };
        /** @description The model's message. */
        ChatMessage: {
            /** @example 屯卦讲的是万事起头难。 */
            content: string;
            /** @example assistant */
            role: string;
        };
        /** @description Tokens as reported by the provider. */
        ChatUsage: {
            /**
             * Format: int64
             * @description Including reasoning tokens.
             * @example 420
             */
            completion_tokens: number;
            /**
             * Format: int64
             * @example 180
             */
            prompt_tokens: number;
            /**
             * Format: int64
             * @example 600
             */
            total_tokens: number;
        };
        /**
         * @description A script of Chinese.
         * @example traditional
         * @enum {string}
         */
        ChineseScript: "simplified" | "traditional";
        /**
         * @description The classical texts of a casting.
         * @example {
         *       "judgement": {
         *         "simplified": "元亨，利贞。勿用有攸往，利建侯。",
         *         "traditional": "元亨，利貞。勿用有攸往，利建侯。"
         *       },
         *       "lines": [
         *         {
         *           "simplified": "磐桓，利居贞，利建侯。",
         *           "traditional": "磐桓，利居貞，利建侯。"
         *         },
         *         {
         *           "simplified": "屯如邅如，乘马班如。匪寇婚媾。女子贞不字，十年乃字。",
         *           "traditional": "屯如邅如，乘馬班如。匪寇婚媾。女子貞不字，十年乃字。"
         *         },
         *         {
         *           "simplified": "即鹿无虞，惟入于林中。君子几不如舍，往吝。",
         *           "traditional": "即鹿无虞，惟入于林中。君子幾不如舍，往吝。"
         *         },
         *         {
         *           "simplified": "乘马班如，求婚媾。往吉，无不利。",
         *           "traditional": "乘馬班如，求婚媾。往吉，无不利。"
         *         },
         *         {
         *           "simplified": "屯其膏。小贞吉，大贞凶。",
         *           "traditional": "屯其膏。小貞吉，大貞凶。"
         *         },
         *         {
         *           "simplified": "乘马班如，泣血涟如。",
         *           "traditional": "乘馬班如，泣血漣如。"
         *         }
         *       ],
         *       "reading": {
         *         "rule": "one_changing",
         *         "texts": [
         *           {
         *             "hexagram": 3,
         *             "isMain": true,
         *             "label": "上六",
         *             "part": "line",
         *             "plain": "骑马徘徊，哭得血泪涟涟，困在尽头不是长久之计，该另寻出路。",
         *             "position": 6,
         *             "text": {
         *               "simplified": "乘马班如，泣血涟如。",
         *               "traditional": "乘馬班如，泣血漣如。"
         *             }
         *           }
         *         ]
         *       }
         *     }
         */
        Classic: {
            /** @description The judgement (卦辞) of the primary hexagram. */
            judgement: components["schemas"]["ClassicalText"];
            /** @description The line texts (爻辞) of the primary hexagram, bottom up. */
            lines: components["schemas"]["ClassicalText"][];
            reading: components["schemas"]["TextSelection"];
        };
        /** @description A classical text in both scripts. */
        ClassicalText: {
            /** @example 元亨，利贞。勿用有攸往，利建侯。 */
            simplified: string;
            /** @example 元亨，利貞。勿用有攸往，利建侯。 */
            traditional: string;
        };
        /**
         * @description The purpose of a verification code.
         * @example sign_in
         * @enum {string}
         */
        CodePurpose: "sign_in" | "address" | "cancellation";
        /** @description The response after a code was sent. */
        CodeSent: {
            /**
             * Format: int64
             * @description Seconds for which the code is valid.
             * @example 300
             */
            expiresIn: number;
            /**
             * @description The number in canonical form.
             * @example 13800138000
             */
            phoneNumber: string;
            /**
             * Format: int64
             * @description Seconds until another code can be requested.
             * @example 60
             */
            resendAfter: number;
        };
        /** @description A user's coin balance. */
        CoinBalance: {
            /**
             * Format: int64
             * @example 59
             */
            balance: number;
            /** @example 13800138000 */
            phoneNumber: string | null;
            /** @example 10001 */
            userId: string;
        };
        /** @description One change of the coin balance. */
        CoinEntry: {
            /**
             * Format: int64
             * @example 59
             */
            balanceAfter: number;
            /**
             * Format: date-time
             * @example 2026-01-02T03:04:05.678Z
             */
            createdAt: string;
            /**
             * Format: int64
             * @description Coins added; negative for coins spent.
             * @example -1
             */
            delta: number;
            kind: components["schemas"]["EntryKind"];
            /**
             * @description The order of a purchase or refund.
             * @example order:202601020123456789012345
             */
            ref: string | null;
            /**
             * Format: int64
             * @description Counts the user's entries from 1.
             * @example 2
             */
            sequence: number;
        };
        /** @description One page of the list. */
        CoinEntryPage: {
            items: components["schemas"]["CoinEntry"][];
            /**
             * Format: int32
             * @example 1
             */
            page: number;
            /**
             * Format: int32
             * @example 20
             */
            size: number;
            /**
             * Format: int64
             * @description Total number on all pages.
             * @example 1
             */
            total: number;
        };
        /** @description A paid use, and the remaining balance. */
        CoinsConsumed: {
            /**
             * Format: int64
             * @example 58
             */
            balance: number;
            /**
             * Format: int64
             * @example 1
             */
            consumed: number;
            /** @example 13800138000 */
            phoneNumber: string | null;
            /** @example 10001 */
            userId: string;
        };
        /** @description An exchange of coins for points, and the balances after it. */
        CoinsExchanged: {
            /**
             * Format: int64
             * @example 50
             */
            coinBalance: number;
            /**
             * Format: int64
             * @example 10
             */
            coins: number;
            /**
             * Format: int64
             * @example 190
             */
            pointBalance: number;
            /**
             * Format: int64
             * @example 100
             */
            points: number;
        };
        /**
         * @description The use of a text.
         * @example question
         * @enum {string}
         */
        ContentType: "nickname" | "signature" | "question" | "answer";
        /** @description The number of records. */
        Counted: {
            /**
             * Format: int64
             * @example 12
             */
            count: number;
        };
        /**
         * @description The time at which the next day begins in charts.
         * @example 23:00
         * @enum {string}
         */
        DayStart: "23:00" | "00:00";
        /** @description The number of hidden records. */
        Deactivated: {
            /** @example 12 */
            deactivated: number;
        };
        /** @description The number of deleted records. */
        Deleted: {
            /** @example 1 */
            deleted: number;
        };
        /** @description Something that was deleted. */
        DeletedItem: {
            /** @example 9b1f7c0e2a4d4e6f8a0b1c2d3e4f5061 */
            id: string;
            kind: components["schemas"]["DeletedKind"];
        };
        /**
         * @description The kind of something deleted.
         * @example session
         * @enum {string}
         */
        DeletedKind: "session" | "history" | "notification";
        /**
         * @description The derivation of a casting by time or by numbers (梅花易数).
         * @example {
         *       "bodyAndUse": {
         *         "body": {
         *           "element": "wood",
         *           "half": "lower",
         *           "trigram": "震"
         *         },
         *         "changed": {
         *           "element": "wood",
         *           "half": "upper",
         *           "relation": "比和",
         *           "trigram": "巽"
         *         },
         *         "nuclear": [
         *           {
         *             "element": "earth",
         *             "half": "lower",
         *             "relation": "体克",
         *             "trigram": "坤"
         *           },
         *           {
         *             "element": "earth",
         *             "half": "upper",
         *             "relation": "体克",
         *             "trigram": "艮"
         *           }
         *         ],
         *         "use": {
         *           "element": "water",
         *           "half": "upper",
         *           "relation": "生体",
         *           "trigram": "坎"
         *         }
         *       },
         *       "changingLine": {
         *         "position": 6,
         *         "sum": 6
         *       },
         *       "lower": {
         *         "remainder": 4,
         *         "sum": 4,
         *         "trigram": "震"
         *       },
         *       "source": {
         *         "kind": "three_numbers",
         *         "line": 6,
         *         "lower": 4,
         *         "upper": 6
         *       },
         *       "upper": {
         *         "remainder": 6,
         *         "sum": 6,
         *         "trigram": "坎"
         *       }
         *     }
         */
        Derivation: {
            /** @description The asker's trigram (体), the matter's (用), and what acts on the asker. */
            bodyAndUse: {
                /** @description The half without the changing line. */
                body: {
                    /**
                     * @description The element.
                     * @example wood
                     * @enum {string}
                     */
                    element: "wood" | "fire" | "earth" | "metal" | "water";
                    /**
                     * @description The half of the hexagram.
                     * @example lower
                     * @enum {string}
                     */
                    half: "lower" | "upper";
                    /**
                     * @description The trigram.
                     * @example 乾
                     * @enum {string}
                     */
                    trigram: "乾" | "兑" | "离" | "震" | "巽" | "坎" | "艮" | "坤";
                };
                /** @description The trigram into which the use changes. */
                changed: {
                    /**
                     * @description The element.
                     * @example wood
                     * @enum {string}
                     */
                    element: "wood" | "fire" | "earth" | "metal" | "water";
                    /**
                     * @description The half of the hexagram.
                     * @example lower
                     * @enum {string}
                     */
                    half: "lower" | "upper";
                    /**
                     * @description The relation of its element to the body's.
                     * @example 生体
                     * @enum {string}
                     */
                    relation: "生体" | "体生" | "克体" | "体克" | "比和";
                    /**
                     * @description The trigram.
                     * @example 乾
                     * @enum {string}
                     */
                    trigram: "乾" | "兑" | "离" | "震" | "巽" | "坎" | "艮" | "坤";
                };
                /** @description The trigrams of the nuclear hexagram, the lower first. */
                nuclear: {
                    /**
                     * @description The element.
                     * @example wood
                     * @enum {string}
                     */
                    element: "wood" | "fire" | "earth" | "metal" | "water";
                    /**
                     * @description The half of the hexagram.
                     * @example lower
                     * @enum {string}
                     */
                    half: "lower" | "upper";
                    /**
                     * @description The relation of its element to the body's.
                     * @example 生体
                     * @enum {string}
                     */
                    relation: "生体" | "体生" | "克体" | "体克" | "比和";
                    /**
                     * @description The trigram.
                     * @example 乾
                     * @enum {string}
                     */
                    trigram: "乾" | "兑" | "离" | "震" | "巽" | "坎" | "艮" | "坤";
                }[];
                /** @description The half with the changing line. */
                use: {
                    /**
                     * @description The element.
                     * @example wood
                     * @enum {string}
                     */
                    element: "wood" | "fire" | "earth" | "metal" | "water";
                    /**
                     * @description The half of the hexagram.
                     * @example lower
                     * @enum {string}
                     */
                    half: "lower" | "upper";
                    /**
                     * @description The relation of its element to the body's.
                     * @example 生体
                     * @enum {string}
                     */
                    relation: "生体" | "体生" | "克体" | "体克" | "比和";
                    /**
                     * @description The trigram.
                     * @example 乾
                     * @enum {string}
                     */
                    trigram: "乾" | "兑" | "离" | "震" | "巽" | "坎" | "艮" | "坤";
                };
            };
            /** @description The changing line and the sum that chose it. */
            changingLine: {
                /** @description The remainder of six, from 1 at the bottom to 6. */
                position: number;
                /** @description The sum. */
                sum: number;
            };
            /** @description The lower trigram and the sum that chose it. */
            lower: {
                /** @description The remainder of eight, from 1 to 8. */
                remainder: number;
                /** @description The sum. */
                sum: number;
                /**
                 * @description The trigram of this number in the Earlier Heaven order.
                 * @example 乾
                 * @enum {string}
                 */
                trigram: "乾" | "兑" | "离" | "震" | "巽" | "坎" | "艮" | "坤";
            };
            /** @description The numbers that the casting began with. `kind` says which members there are. */
            source: {
                /** @description The lunar day. */
                day?: number;
                /** @description The branch of the double hour. */
                hour?: {
                    /**
                     * @description The branch.
                     * @example 子
                     * @enum {string}
                     */
                    branch: "子" | "丑" | "寅" | "卯" | "辰" | "巳" | "午" | "未" | "申" | "酉" | "戌" | "亥";
                    /** @description From 1 (子) to 12 (亥). */
                    number: number;
                };
                /** @description True in a leap month. */
                isLeapMonth?: boolean;
                /**
                 * @description `time`: year, month, day, hour. `number_and_hour`: number, hour. `two_numbers`: upper, lower. `three_numbers`: upper, lower, line.
                 * @example two_numbers
                 * @enum {string}
                 */
                kind: "two_numbers" | "three_numbers" | "number_and_hour" | "time";
                /** @description The number for the changing line. */
                line?: number;
                /** @description The number for the lower trigram. */
                lower?: number;
                /** @description The lunar month. A leap month counts as the month that it repeats. */
                month?: number;
                /** @description The only number. */
                number?: number;
                /** @description The number for the upper trigram. */
                upper?: number;
                /** @description The branch of the lunar year. */
                year?: {
                    /**
                     * @description The branch.
                     * @example 子
                     * @enum {string}
                     */
                    branch: "子" | "丑" | "寅" | "卯" | "辰" | "巳" | "午" | "未" | "申" | "酉" | "戌" | "亥";
                    /** @description From 1 (子) to 12 (亥). */
                    number: number;
                };
            };
            /** @description The upper trigram and the sum that chose it. */
            upper: {
                /** @description The remainder of eight, from 1 to 8. */
                remainder: number;
                /** @description The sum. */
                sum: number;
                /**
                 * @description The trigram of this number in the Earlier Heaven order.
                 * @example 乾
                 * @enum {string}
                 */
                trigram: "乾" | "兑" | "离" | "震" | "巽" | "坎" | "艮" | "坤";
            };
        };
        /** @description A device that is signed in. */
        Device: {
            /**
             * Format: date-time
             * @example 2026-01-02T03:04:05.678Z
             */
            createdAt: string;
            /**
             * @description True for the device that sent the request.
             * @example true
             */
            current: boolean;
            /**
             * Format: date-time
             * @example 2026-02-01T00:00:00.000Z
             */
            expiresAt: string;
            /** @example 9f2c1b7d03aa41c5 */
            id: string;
            /**
             * @description The device's own label; empty if it has none.
             * @example Yarrow, iPhone
             */
            label: string;
            /**
             * Format: date-time
             * @description Accurate to the hour.
             * @example 2026-01-05T09:00:00.000Z
             */
            lastUsedAt: string;
        };
        /** @description The signed-in devices, newest sign-in first. */
        Devices: {
            items: components["schemas"]["Device"][];
        };
        /** @description The response after a code was sent. */
        EmailCodeSent: {
            /**
             * @description The address in canonical form.
             * @example li.ming@example.com
             */
            email: string;
            /**
             * Format: int64
             * @description Seconds for which the code is valid.
             * @example 600
             */
            expiresIn: number;
            /**
             * Format: int64
             * @description Seconds until another code can be requested.
             * @example 60
             */
            resendAfter: number;
        };
        /**
         * @description The reason for a ledger entry.
         * @example topup
         * @enum {string}
         */
        EntryKind: "topup" | "consume" | "reset" | "adjust" | "signup_bonus" | "cast" | "invite_bonus" | "invitee_bonus" | "parked" | "restored" | "refund" | "interpretation" | "interpretation_refund" | "purchase_bonus" | "purchase_bonus_refund" | "exchange" | "refund_reversal" | "test_purchase" | "import";
        /** @description Stored feedback. */
        FeedbackReceived: components["schemas"]["FeedbackSender"] & {
            /** @example 请加上小六壬。 */
            content: string;
            /**
             * Format: date-time
             * @example 2026-01-02T03:04:05.678Z
             */
            createdAt: string;
            /** @example 7 */
            id: string;
        };
        /**
         * @description The sender of feedback, unverified without a token. Each name comes in both spellings; the API document has one, because
         *     generated clients turn both into the same name.
         */
        FeedbackSender: {
            /** @example 13800138000 */
            phone_number: string | null;
            /** @example 10001 */
            user_id: string | null;
        };
        /** @description A word or label found in a text. */
        FoundWord: {
            /** @example 5 */
            end: number;
            severity: components["schemas"]["Severity"];
            /**
             * @description Offsets into the text in characters (Unicode scalar values); the end is exclusive.
             * @example 2
             */
            start: number;
            /**
             * @example [
             *       "spam"
             *     ]
             */
            tags: string[];
            /**
             * @description The matching part of the text.
             * @example 赌*博
             */
            text: string;
            /** @example gambling */
            type: string;
            /** @description The way in which the word was found. */
            way: components["schemas"]["MatchWay"];
            /**
             * @description The word as listed.
             * @example 赌博
             */
            word: string;
        };
        /**
         * @description The gender of a user.
         * @example female
         * @enum {string}
         */
        Gender: "unknown" | "male" | "female" | "other";
        /** @description The state of the process. */
        Health: {
            /** @example ok */
            status: string;
        };
        /** @description One of the sixty-four. */
        Hexagram: {
            /**
             * @description Including its trigrams.
             * @example 水雷屯
             */
            chineseFullName: string;
            /** @example 屯 */
            chineseName: string;
            /** @example Difficulty at the Beginning */
            englishName: string;
            lower: components["schemas"]["Trigram"];
            /**
             * Format: int32
             * @description In the order of King Wen, 1 to 64.
             * @example 3
             */
            number: number;
            /** @example zhūn */
            pinyin: string;
            /** @example ䷂ */
            sign: string;
            upper: components["schemas"]["Trigram"];
        };
        /**
         * @description All hexagrams.
         * @example {
         *       "items": [
         *         {
         *           "chineseFullName": "水雷屯",
         *           "chineseName": "屯",
         *           "englishName": "Difficulty at the Beginning",
         *           "judgement": {
         *             "simplified": "元亨，利贞。勿用有攸往，利建侯。",
         *             "traditional": "元亨，利貞。勿用有攸往，利建侯。"
         *           },
         *           "lower": {
         *             "chineseName": "震",
         *             "englishName": "The Arousing",
         *             "pinyin": "zhèn",
         *             "sign": "☳"
         *           },
         *           "number": 3,
         *           "pinyin": "zhūn",
         *           "plain": "万物初生艰难，前景亨通而眼下不宜远行，先守正、立根基、找帮手。",
         *           "sign": "䷂",
         *           "traditionalName": "屯",
         *           "upper": {
         *             "chineseName": "坎",
         *             "englishName": "The Abysmal",
         *             "pinyin": "kǎn",
         *             "sign": "☵"
         *           }
         *         }
         *       ]
         *     }
         */
        HexagramList: {
            /** @description In the order of King Wen. */
            items: components["schemas"]["HexagramSummary"][];
        };
        /** @description A hexagram with its judgement. */
        HexagramSummary: components["schemas"]["Hexagram"] & {
            /** @description The judgement (卦辞), without the name before it. */
            judgement: components["schemas"]["ClassicalText"];
            /**
             * @description The judgement in one plain sentence, in the language of `Accept-Language`.
             * @example 万物初生艰难，前景亨通而眼下不宜远行，先守正、立根基、找帮手。
             */
            plain: string;
            /**
             * @description The short name in traditional characters.
             * @example 屯
             */
            traditionalName: string;
        };
        /**
         * @description A hexagram with all its classical texts.
         * @example {
         *       "allLines": null,
         *       "chineseFullName": "水雷屯",
         *       "chineseName": "屯",
         *       "commentary": {
         *         "simplified": "屯，刚柔始交而难生，动乎险中，大亨贞。雷雨之动满盈，天造草昧，宜建侯而不宁。",
         *         "traditional": "屯，剛柔始交而難生，動乎險中，大亨貞。雷雨之動滿盈，天造草昧，宜建侯而不寧。"
         *       },
         *       "englishName": "Difficulty at the Beginning",
         *       "image": {
         *         "simplified": "云雷，屯，君子以经纶。",
         *         "traditional": "雲雷，屯，君子以經綸。"
         *       },
         *       "judgement": {
         *         "simplified": "元亨，利贞。勿用有攸往，利建侯。",
         *         "traditional": "元亨，利貞。勿用有攸往，利建侯。"
         *       },
         *       "lines": [
         *         {
         *           "image": {
         *             "simplified": "虽磐桓，志行正也。以贵下贱，大得民也。",
         *             "traditional": "雖磐桓，志行正也。以貴下賤，大得民也。"
         *           },
         *           "label": "初九",
         *           "plain": "起步时徘徊难进，宜安居守正，先把人心和班底建立起来。",
         *           "text": {
         *             "simplified": "磐桓，利居贞，利建侯。",
         *             "traditional": "磐桓，利居貞，利建侯。"
         *           }
         *         },
         *         {
         *           "image": {
         *             "simplified": "六二之难，乘刚也。十年乃字，反常也。",
         *             "traditional": "六二之難，乘剛也。十年乃字，反常也。"
         *           },
         *           "label": "六二",
         *           "plain": "车马徘徊，来的不是强盗而是求婚的人，女子守正，十年后才许嫁。",
         *           "text": {
         *             "simplified": "屯如邅如，乘马班如。匪寇婚媾。女子贞不字，十年乃字。",
         *             "traditional": "屯如邅如，乘馬班如。匪寇婚媾。女子貞不字，十年乃字。"
         *           }
         *         },
         *         {
         *           "image": {
         *             "simplified": "即鹿无虞，以从禽也。君子舍之，往吝穷也。",
         *             "traditional": "即鹿无虞，以從禽也。君子舍之，往吝窮也。"
         *           },
         *           "label": "六三",
         *           "plain": "追鹿却没有向导，只会迷进林子，不如及早放手，硬追会有遗憾。",
         *           "text": {
         *             "simplified": "即鹿无虞，惟入于林中。君子几不如舍，往吝。",
         *             "traditional": "即鹿无虞，惟入于林中。君子幾不如舍，往吝。"
         *           }
         *         },
         *         {
         *           "image": {
         *             "simplified": "求而往，明也。",
         *             "traditional": "求而往，明也。"
         *           },
         *           "label": "六四",
         *           "plain": "乘马徘徊而去求婚，主动求合得其人，前往则吉，没有不利。",
         *           "text": {
         *             "simplified": "乘马班如，求婚媾。往吉，无不利。",
         *             "traditional": "乘馬班如，求婚媾。往吉，无不利。"
         *           }
         *         },
         *         {
         *           "image": {
         *             "simplified": "屯其膏，施未光也。",
         *             "traditional": "屯其膏，施未光也。"
         *           },
         *           "label": "九五",
         *           "plain": "恩泽积着难以施开，办小事守正可吉，办大事硬来多半不好。",
         *           "text": {
         *             "simplified": "屯其膏。小贞吉，大贞凶。",
         *             "traditional": "屯其膏。小貞吉，大貞凶。"
         *           }
         *         },
         *         {
         *           "image": {
         *             "simplified": "泣血涟如，何可长也？",
         *             "traditional": "泣血漣如，何可長也？"
         *           },
         *           "label": "上六",
         *           "plain": "骑马徘徊，哭得血泪涟涟，困在尽头不是长久之计，该另寻出路。",
         *           "text": {
         *             "simplified": "乘马班如，泣血涟如。",
         *             "traditional": "乘馬班如，泣血漣如。"
         *           }
         *         }
         *       ],
         *       "lower": {
         *         "chineseName": "震",
         *         "englishName": "The Arousing",
         *         "pinyin": "zhèn",
         *         "sign": "☳"
         *       },
         *       "number": 3,
         *       "pinyin": "zhūn",
         *       "plain": "万物初生艰难，前景亨通而眼下不宜远行，先守正、立根基、找帮手。",
         *       "sign": "䷂",
         *       "traditionalName": "屯",
         *       "upper": {
         *         "chineseName": "坎",
         *         "englishName": "The Abysmal",
         *         "pinyin": "kǎn",
         *         "sign": "☵"
         *       }
         *     }
         */
        HexagramTexts: components["schemas"]["HexagramSummary"] & {
            allLines: components["schemas"]["LineTexts"] | null;
            /** @description The commentary on the judgement (彖). */
            commentary: components["schemas"]["ClassicalText"];
            /** @description The image (大象). */
            image: components["schemas"]["ClassicalText"];
            /** @description The six lines, bottom up. */
            lines: components["schemas"]["LineTexts"][];
        };
        /** @description A stored history record. */
        HistoryRecord: {
            /** @example 水雷屯：万事起头难…… */
            aiResult: string | null;
            /**
             * Format: date-time
             * @example 2026-01-02T03:04:05.678Z
             */
            createdAt: string;
            /** @description The data as sent, byte for byte. */
            jsonData: unknown;
            /** @example a1b2c3 */
            localRecordId: string;
            /** @example 13800138000 */
            phoneNumber: string | null;
            /** @example 今年换工作合适吗？ */
            question: string | null;
            /** @example career */
            questionType: string | null;
            /**
             * Format: double
             * @description The client's own timestamp.
             * @example 1767225600000
             */
            timestamp: number | null;
            /**
             * Format: date-time
             * @example 2026-01-02T03:04:05.678Z
             */
            updatedAt: string;
            /** @example 10001 */
            userId: string;
            /**
             * @description Changes with every save. A save can name it as `baseVersion`.
             * @example 42
             */
            version: string;
        };
        HistoryRecordList: {
            items: components["schemas"]["HistoryRecord"][];
            /**
             * Format: int64
             * @example 1
             */
            total: number;
        };
        /**
         * @description A service at which users have an identity.
         * @example apple
         * @enum {string}
         */
        IdentityProvider: "apple" | "google" | "wechat";
        /** @description The present state of the inbox and the balances. */
        InboxState: {
            balances: components["schemas"]["Balances"];
            /**
             * @description The number of unread notifications.
             * @example 3
             */
            unread: number;
        };
        /** @description An interpretation. */
        Interpretation: {
            /** @description The chart, if `/divination/enhanced` knows the lines. Without `castAt` it has no time. */
            chart?: components["schemas"]["Chart"];
            /** @description The classical texts, if `/divination/enhanced` knows the lines. */
            classic?: components["schemas"]["Classic"];
            /**
             * Format: date-time
             * @example 2026-01-02T03:04:05.678Z
             */
            createdAt: string;
            /**
             * Format: int64
             * @example 2
             */
            durationMs: number | null;
            /**
             * @description `stop`, or `length` if the token limit cut the result; null if unknown.
             * @example stop
             */
            finishReason: string | null;
            /** @example builtin-1 */
            model: string;
            /**
             * @description Version of the prompt.
             * @example 2
             */
            promptVersion: string;
            /**
             * @description The provider; `builtin` is the offline interpreter.
             * @example builtin
             */
            provider: string;
            rating: components["schemas"]["Rating"] | null;
            /** @example 水雷屯：万事起头难…… */
            result: string | null;
            status: components["schemas"]["CallStatus"];
            /** @example 4bf92f3577b34da6a3ce929d0e0e4736 */
            traceId: string;
            usage: components["schemas"]["Usage"];
        };
        /** @description The data of a `delta` event: the next piece of the text. */
        InterpretationPiece: {
            /** @example 万事起头难 */
            text: string;
        };
        /** @description The record of an interpretation. */
        InterpretationRecord: {
            /**
             * @description The cost by the server's price list; null if the tokens or the price are unknown.
             * @example 0.0042
             */
            cost: string | null;
            /**
             * Format: date-time
             * @example 2026-01-02T03:04:05.678Z
             */
            createdAt: string;
            /** @description The data as sent. */
            divinationData: unknown;
            /**
             * Format: int64
             * @example 2
             */
            durationMs: number | null;
            /**
             * @description The kind of failure.
             * @example timed_out
             */
            errorClass: string | null;
            /**
             * @description The primary model's failure, if the fallback was called.
             * @example busy
             */
            failover: string | null;
            /**
             * Format: date-time
             * @example 2026-01-02T03:04:05.680Z
             */
            finishedAt: string | null;
            /**
             * @description `stop`, or `length` if the token limit cut the result; null if there is no result or the reason is unknown.
             * @example stop
             */
            finishReason: string | null;
            /**
             * Format: int64
             * @description Milliseconds until the first piece of the answer.
             * @example 1
             */
            firstTokenMs: number | null;
            /** @example builtin-1 */
            model: string;
            /**
             * @description Version of the prompt.
             * @example 2
             */
            promptVersion: string;
            /** @example builtin */
            provider: string;
            /** @example 今年换工作合适吗？ */
            question: string;
            /** @example career */
            questionType: string | null;
            rating: components["schemas"]["Rating"] | null;
            /** @example 水雷屯：万事起头难…… */
            result: string | null;
            status: components["schemas"]["CallStatus"];
            /** @example 4bf92f3577b34da6a3ce929d0e0e4736 */
            traceId: string;
            usage: components["schemas"]["Usage"];
            /** @example 10001 */
            userId: string;
        };
        /** @description One page of the list. */
        InterpretationRecordPage: {
            items: components["schemas"]["InterpretationRecord"][];
            /**
             * Format: int32
             * @example 1
             */
            page: number;
            /**
             * Format: int32
             * @example 20
             */
            size: number;
            /**
             * Format: int64
             * @description Total number on all pages.
             * @example 1
             */
            total: number;
        };
        /** @description The data of a `meta` event, which begins a stream. */
        InterpretationStarted: {
            /** @example builtin-1 */
            model: string;
            /** @example builtin */
            provider: string;
            /** @example 4bf92f3577b34da6a3ce929d0e0e4736 */
            traceId: string;
        };
        /** @description The caller's code and the points it has earned. */
        Invite: {
            /** @example 7KQ4M2XD */
            code: string;
            /**
             * Format: int32
             * @description Points for each invite.
             * @example 20
             */
            inviteBonus: number;
            /**
             * Format: int64
             * @description Number of users who redeemed it.
             * @example 3
             */
            invited: number;
            /**
             * Format: int32
             * @description Points for the user who redeems it.
             * @example 20
             */
            inviteeBonus: number;
            /**
             * Format: date-time
             * @description End of the period in which the caller can redeem a code.
             * @example 2026-01-09T03:04:05.678Z
             */
            redeemableUntil: string;
            /**
             * Format: date-time
             * @description Time at which the caller redeemed a code.
             * @example 2026-01-02T03:04:05.678Z
             */
            redeemedAt: string | null;
            /**
             * Format: int64
             * @description Rewarded invites of the caller, including earlier accounts.
             * @example 3
             */
            rewarded: number;
            /**
             * Format: int32
             * @description Maximum number of rewarded invites.
             * @example 50
             */
            rewardedLimit: number;
        };
        /** @description The outcome of an invite code at sign-in. */
        InviteAtLogin: {
            /**
             * Format: int64
             * @description Points granted to the caller.
             * @example 20
             */
            pointsGranted: number;
            /** @example true */
            redeemed: boolean;
            /**
             * @description The problem code if nothing was granted, such as `unknown_invite`, `own_invite`, `invite_expired` or
             *     `already_invited`.
             * @example null
             */
            refusal: string | null;
        };
        /** @description The points granted for a redeemed code. */
        InviteRedeemed: {
            /**
             * Format: int64
             * @example 120
             */
            balance: number;
            /**
             * Format: int64
             * @example 20
             */
            pointsGranted: number;
        };
        /** @description The newest broadcast, or null. */
        LatestNotification: {
            notification: components["schemas"]["Notification"] | null;
        };
        /**
         * @description State of the ledger: `unverified` until the first verification.
         * @example consistent
         * @enum {string}
         */
        LedgerState: "consistent" | "inconsistent" | "unverified";
        /** @description The texts of a line. */
        LineTexts: {
            /** @description The image of the line (小象). */
            image: components["schemas"]["ClassicalText"];
            /** @example 初九 */
            label: string;
            /**
             * @description The text in one plain sentence, in the language of `Accept-Language`.
             * @example 起步时徘徊难进，宜安居守正，先把人心和班底建立起来。
             */
            plain: string;
            /** @description The text of the line (爻辞). */
            text: components["schemas"]["ClassicalText"];
        };
        /** @description An identity at another service with which the caller can sign in. */
        LinkedIdentity: {
            /**
             * Format: date-time
             * @example 2026-01-05T09:00:00.000Z
             */
            lastUsedAt: string;
            /**
             * Format: date-time
             * @example 2026-01-02T03:04:05.678Z
             */
            linkedAt: string;
            provider: components["schemas"]["IdentityProvider"];
        };
        /**
         * @description A language.
         * @example zh
         * @enum {string}
         */
        Locale: "zh" | "en";
        /** @description The response after sign-out. */
        LoggedOut: {
            /** @example true */
            loggedOut: boolean;
        };
        /** @description The number still unread, and the number marked, including kinds that are switched off. */
        MarkedRead: {
            /**
             * @description Always 0.
             * @example 0
             */
            count: number;
            /** @example 3 */
            marked: number;
        };
        /**
         * @description The way in which a listed word was found, the most certain first.
         * @example exact
         * @enum {string}
         */
        MatchWay: "exact" | "gap" | "letters" | "split" | "emoji" | "sound" | "fuzzy" | "initial" | "shape" | "reversed";
        /** @description An order that can be paid. */
        NewOrder: components["schemas"]["Order"] & {
            /**
             * @description Alipay and the sandbox: pass it unchanged to the provider's SDK. Null for other channels.
             * @example method=alipay.trade.app.pay&app_id=sandbox&charset=utf-8&…
             */
            orderString: string | null;
            /**
             * @description Other channels: the parameters for WeChat's SDK or page, or `url`, `h5_url` or `code_url` to open or show.
             * @example {
             *       "url": "https://checkout.stripe.com/c/pay/cs_1"
             *     }
             */
            payment: {
                [key: string]: string;
            };
        };
        /** @description A notification in the user's inbox. */
        Notification: {
            /** @example 更新后即可使用。 */
            body: string;
            /**
             * Format: date-time
             * @example 2026-01-02T03:04:05.678Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @example 2026-02-02T03:04:05.678Z
             */
            expiresAt: string | null;
            /** @example 42 */
            id: string;
            kind: components["schemas"]["NotificationKind"];
            payload: components["schemas"]["NotificationPayload"];
            /**
             * Format: date-time
             * @description Time at which the caller first read it.
             * @example 2026-01-02T09:04:05.678Z
             */
            readAt: string | null;
            /** @example 六十四卦全新解读 */
            title: string;
        };
        /** @description One page of the list, newest first. */
        NotificationCursorPage: {
            items: components["schemas"]["Notification"][];
            /**
             * @description Send it as `cursor` to get the next page. Null at the end of the list.
             * @example AAAAAAAAACp9k2fQx1m0bY4sVwT7uLpH
             */
            nextCursor: string | null;
        };
        /**
         * @description The kind of a notification.
         * @example activity
         * @enum {string}
         */
        NotificationKind: "system" | "account" | "activity" | "promotion";
        /**
         * @description The action when the user taps it: none, a page of the app, or a URL.
         * @example {
         *       "params": {
         *         "id": "7"
         *       },
         *       "route": "sessions/detail",
         *       "type": "open_route"
         *     }
         */
        NotificationPayload: {
            /** @enum {string} */
            type: "none";
        } | {
            params: components["schemas"]["RouteParameters"];
            route: string;
            /** @enum {string} */
            type: "open_route";
        } | {
            /** @enum {string} */
            type: "open_url";
            url: string;
        };
        /** @description The kinds of notification that are shown and counted. */
        NotificationSwitches: {
            /**
             * @description Notifications about the caller's account.
             * @example true
             */
            account: boolean;
            /**
             * @description Events and news.
             * @example true
             */
            activity: boolean;
            /**
             * @description Promotions.
             * @example false
             */
            promotion: boolean;
            /**
             * @description Notifications about the service. Cannot be switched off.
             * @example true
             */
            system: boolean;
        };
        /** @description An order of the caller. */
        Order: {
            /**
             * @description The price, with two decimals.
             * @example 6.00
             */
            amount: string;
            asset: components["schemas"]["Asset"];
            /**
             * Format: int64
             * @description The bonus that was given. Before the credit, the bonus of each purchase, without that of a first purchase.
             * @example 0
             */
            bonus: number;
            channel: components["schemas"]["PaymentChannel"];
            /**
             * Format: date-time
             * @example 2026-01-03T04:04:05.678Z
             */
            closedAt: string | null;
            /**
             * Format: int32
             * @description The same as `count`.
             * @example 600
             */
            coinCount: number;
            /**
             * Format: int32
             * @description Coins or points that it brings, without bonus.
             * @example 600
             */
            count: number;
            /**
             * Format: date-time
             * @example 2026-01-02T03:04:05.678Z
             */
            createdAt: string;
            /**
             * Format: date-time
             * @example 2026-01-02T03:05:06.678Z
             */
            creditedAt: string | null;
            /** @example CNY */
            currency: string;
            /**
             * Format: date-time
             * @description Time until which it can be paid.
             * @example 2026-01-02T03:34:05.678Z
             */
            expiresAt: string;
            /** @example 202601020123456789012345 */
            orderNo: string;
            /**
             * @description The amount received.
             * @example 6.00
             */
            paid: string;
            /**
             * Format: date-time
             * @example 2026-01-02T03:05:05.678Z
             */
            paidAt: string | null;
            /** @example points_600 */
            productId: string;
            /** @example 0.00 */
            refunded: string;
            /**
             * Format: date-time
             * @example 2026-01-04T03:04:05.678Z
             */
            refundedAt: string | null;
            /**
             * Format: int64
             * @description Coins or points taken back for refunds, bonus included.
             * @example 0
             */
            returned: number;
            status: components["schemas"]["OrderState"];
            /**
             * @description The name that the buyer sees at the provider.
             * @example 600 points
             */
            subject: string;
            /**
             * @description The provider's number of the payment; null until it is paid.
             * @example 2026010222001400000000000001
             */
            tradeNo: string | null;
            /** @example 10001 */
            userId: string;
        };
        /** @description One page of the list, newest first. */
        OrderCursorPage: {
            items: components["schemas"]["Order"][];
            /**
             * @description Send it as `cursor` to get the next page. Null at the end of the list.
             * @example AAAAAAAAACp9k2fQx1m0bY4sVwT7uLpH
             */
            nextCursor: string | null;
        };
        /** @description One page of the list. */
        OrderPage: {
            items: components["schemas"]["Order"][];
            /**
             * Format: int32
             * @example 1
             */
            page: number;
            /**
             * Format: int32
             * @example 20
             */
            size: number;
            /**
             * Format: int64
             * @description Total number on all pages.
             * @example 1
             */
            total: number;
        };
        /**
         * @description State of an order.
         * @example credited
         * @enum {string}
         */
        OrderState: "created" | "paid" | "credited" | "closed" | "refunded" | "review";
        /**
         * @description The kind of program in which the buyer pays.
         * @example app
         * @enum {string}
         */
        PayerClient: "app" | "h5" | "jsapi" | "native";
        /**
         * @description A way to pay.
         * @example alipay
         * @enum {string}
         */
        PaymentChannel: "alipay" | "wechat" | "stripe" | "sandbox";
        /** @description An order that can be paid. */
        PaymentOrder: {
            /**
             * @description Yuan, with two decimals.
             * @example 6.00
             */
            amount: string;
            channel: components["schemas"]["PaymentChannel"];
            /**
             * Format: int32
             * @example 60
             */
            coinCount: number;
            /** @example CNY */
            currency: string;
            /**
             * Format: date-time
             * @description Time until which it can be paid.
             * @example 2026-01-02T03:34:05.678Z
             */
            expiresAt: string;
            /** @example 202601020123456789012345 */
            orderNo: string;
            /**
             * @description Alipay and the sandbox: pass it unchanged to the provider's SDK. Null for other channels.
             * @example method=alipay.trade.app.pay&app_id=sandbox&charset=utf-8&…
             */
            orderString: string | null;
            /**
             * @description Other channels: the parameters for WeChat's SDK or page, or `url`, `h5_url` or `code_url` to open or show.
             * @example {
             *       "url": "https://checkout.stripe.com/c/pay/cs_1"
             *     }
             */
            payment: {
                [key: string]: string;
            };
            status: components["schemas"]["OrderState"];
            /**
             * @description The provider's number of the payment; null until it is paid.
             * @example null
             */
            tradeNo: string | null;
            /** @example 10001 */
            userId: string;
        };
        /** @description The status of an order, and the user's balance. */
        PaymentStatus: {
            /**
             * Format: int64
             * @example 60
             */
            balance: number;
            /**
             * Format: int32
             * @example 60
             */
            coinCount: number;
            /** @example 202601020123456789012345 */
            orderNo: string;
            /**
             * @description The state of the order; `pending` until it is paid, and while the provider is unavailable.
             * @example credited
             * @enum {string}
             */
            status: "created" | "paid" | "credited" | "closed" | "refunded" | "review" | "pending";
            /**
             * @description The provider's number of the payment; null until it is paid.
             * @example 2026010222001400000000000001
             */
            tradeNo: string | null;
            /** @example 10001 */
            userId: string;
        };
        /** @description The caller's point balance. */
        PointBalance: {
            /**
             * Format: int64
             * @example 90
             */
            balance: number;
        };
        /** @description One change of the balance. */
        PointEntry: {
            asset: components["schemas"]["Asset"];
            /**
             * Format: int64
             * @example 90
             */
            balanceAfter: number;
            /**
             * Format: date-time
             * @example 2026-01-02T03:04:05.678Z
             */
            createdAt: string;
            /**
             * Format: int64
             * @description Points added; negative for points deducted.
             * @example -10
             */
            delta: number;
            kind: components["schemas"]["EntryKind"];
            /**
             * @description `session:` and the id of the paid session, which may have been deleted since; `order:` and the number of an order.
             * @example session:9b1f7c0e2a4d4e6f8a0b1c2d3e4f5061
             */
            ref: string | null;
            /**
             * Format: int64
             * @description Counts the caller's entries from 1.
             * @example 2
             */
            seq: number;
            /**
             * Format: int64
             * @description The entry's number in the user's point account.
             * @example 2
             */
            sequence: number;
        };
        /** @description One page of the list, newest first. */
        PointEntryCursorPage: {
            items: components["schemas"]["PointEntry"][];
            /**
             * @description Send it as `cursor` to get the next page. Null at the end of the list.
             * @example AAAAAAAAACp9k2fQx1m0bY4sVwT7uLpH
             */
            nextCursor: string | null;
        };
        /** @description The caller's preferences. */
        Preferences: {
            dayStart: components["schemas"]["DayStart"];
            locale: components["schemas"]["Locale"] | null;
            notifications: components["schemas"]["NotificationSwitches"];
            /**
             * @description Hours of the day without pushes, in the time zone. Null if there are none.
             * @example 22:00-08:00
             */
            quietHours: string | null;
            /** @description The script of texts in Chinese. Absent if never set; `Accept-Language` applies then. */
            script?: components["schemas"]["ChineseScript"];
            /** @example Asia/Shanghai */
            timeZone: string | null;
            /**
             * Format: date-time
             * @description Null if the caller never changed a preference.
             * @example 2026-01-02T03:04:05.678Z
             */
            updatedAt: string | null;
        };
        /** @description The body of every error, RFC 9457. */
        Problem: {
            /**
             * @description The stable code.
             * @example invalid_parameters
             * @enum {string}
             */
            code: "invalid_request" | "invalid_json" | "conflicting_parameter" | "unauthenticated" | "invalid_code" | "invalid_identity" | "identity_taken" | "email_code_required" | "last_identity" | "not_yours" | "forbidden" | "user_suspended" | "nickname_suspended" | "not_found" | "cursor_expired" | "unknown_endpoint" | "no_release" | "method_not_allowed" | "step_up_required" | "invalid_credentials" | "totp_required" | "address_not_allowed" | "insufficient_coins" | "insufficient_points" | "already_posted" | "balance_too_large" | "account_inconsistent" | "unknown_package" | "unknown_product" | "order_state" | "purchase_refused" | "purchase_revoked" | "idempotency_key_reused" | "unknown_invite" | "own_invite" | "invite_expired" | "already_invited" | "confirmation_required" | "already_running" | "interpretation_limit" | "already_exists" | "last_owner" | "address_taken" | "history_full" | "history_too_large" | "version_conflict" | "body_too_large" | "unsupported_media_type" | "invalid_parameters" | "content_rejected" | "moderation_unavailable" | "not_configured" | "too_many_requests" | "too_many_calls" | "budget_spent" | "request_timeout" | "provider_failed" | "provider_unavailable" | "provider_timeout" | "overloaded" | "superseded" | "storage_full" | "storage_failed" | "outcome_unknown" | "unsupported_by_database" | "internal";
            /**
             * @description The token with which to repeat a request that needs confirmation.
             * @example kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs
             */
            confirm?: string;
            /**
             * @description A sentence for developers, in Chinese if `Accept-Language` prefers it, or else in English. It may change; branch
             *     on `code`.
             * @example Some parameters are invalid; `errors` lists all of them.
             */
            detail: string;
            /** @description All invalid fields. */
            errors?: components["schemas"]["ProblemField"][];
            /**
             * Format: date-time
             * @description Time at which that token expires.
             * @example 2026-01-02T03:14:05.678Z
             */
            expiresAt?: string;
            /**
             * @description A sentence for users in their language: Chinese without `Accept-Language` and where it prefers that, else English.
             * @example 部分参数有误：phoneNumber。
             */
            message: string;
            /** @description The newer state of a record that was edited in an older one; missing if it was deleted. */
            record?: Record<string, never>;
            /**
             * @description The request's id, as in `X-Request-Id` and in the log.
             * @example 9f2c1b7d0000000000000001
             */
            requestId: string;
            /**
             * Format: int32
             * @example 422
             */
            status: number;
            /**
             * @description The status in words.
             * @example Unprocessable Entity
             */
            title: string;
            /**
             * @description Trace id of the failed interpretation.
             * @example 4bf92f3577b34da6a3ce929d0e0e4736
             */
            traceId?: string;
            /**
             * @description Always `about:blank`: `code` identifies the problem.
             * @example about:blank
             */
            type: string;
            /** @description The rows that would be deleted, by kind. */
            wouldDelete?: Record<string, never>;
            /** @description The rows of the same kinds that would remain. */
            wouldKeep?: Record<string, never>;
        };
        /** @description One invalid field of a request. */
        ProblemField: {
            /**
             * @description The kind of fault.
             * @example required
             * @enum {string}
             */
            code: "required" | "invalid_type" | "invalid_format" | "invalid_character" | "too_long" | "too_short" | "too_many" | "out_of_range" | "unknown_value" | "not_mobile" | "region_not_allowed" | "not_allowed" | "rejected";
            /** @example phoneNumber */
            field: string;
            /** @example is required */
            message: string;
        };
        /** @description A product that can be bought. */
        Product: {
            /** @description The product id at Apple's App Store. */
            appleId: string | null;
            asset: components["schemas"]["Asset"];
            /**
             * Format: int32
             * @description Given with each purchase.
             * @example 0
             */
            bonus: number;
            /** @description The channels that sell it, the default first, each with its price. Empty if only app stores do. */
            channels: components["schemas"]["ChannelPrice"][];
            /**
             * Format: int32
             * @description Coins or points that it brings, without bonus.
             * @example 600
             */
            count: number;
            /** @example CNY */
            currency: string;
            description: string | null;
            /**
             * Format: int32
             * @description Given with the user's first purchase too.
             * @example 0
             */
            firstBonus: number;
            /** @description The product id at Google Play. */
            googleId: string | null;
            /** @example points_600 */
            id: string;
            /**
             * @description Yuan with two decimals. Null for a product that only app stores sell, at their price.
             * @example 6.00
             */
            price: string | null;
            /**
             * @description The name, in the language of the request.
             * @example 600 points
             */
            subject: string;
        };
        /** @description The products for sale, by asset and price, and the prices of uses. */
        ProductList: {
            items: components["schemas"]["Product"][];
            /**
             * Format: int32
             * @description Points that a user gets for one coin. 0 if coins cannot be exchanged.
             * @example 0
             */
            pointsPerCoin: number;
            prices: components["schemas"]["UsePrices"];
        };
        /** @description A user's profile. */
        Profile: {
            /** @example 1990-05-17 */
            birthday: string | null;
            gender: components["schemas"]["Gender"];
            /** @example 10001 */
            id: string;
            /** @example 青山 */
            nickname: string;
            /** @example 心静则明 */
            signature: string;
            /** @example 10001 */
            userId: string;
        };
        /**
         * @description The issuer of a proof of identity.
         * @example apple
         * @enum {string}
         */
        ProofProvider: "apple" | "google" | "wechat" | "phone";
        /** @description A purchase of the caller in an app store. */
        Purchase: {
            asset: components["schemas"]["Asset"] | null;
            /**
             * Format: int64
             * @example 0
             */
            bonus: number;
            /**
             * Format: int64
             * @description Coins or points that it brought, without bonus.
             * @example 60
             */
            count: number;
            /**
             * Format: date-time
             * @example 2026-01-02T03:04:06.678Z
             */
            creditedAt: string | null;
            environment: components["schemas"]["PurchaseEnvironment"];
            /**
             * @description The number for support.
             * @example 17
             */
            id: string;
            /**
             * @description The product, once it is credited.
             * @example coins_60
             */
            productId: string | null;
            /**
             * Format: date-time
             * @example 2026-01-02T03:04:05.678Z
             */
            purchasedAt: string | null;
            /**
             * Format: int32
             * @description The number of units bought.
             * @example 1
             */
            quantity: number;
            /**
             * Format: int64
             * @description Coins or points taken back for refunds.
             * @example 0
             */
            returned: number;
            /**
             * Format: date-time
             * @example 2026-01-04T03:04:05.678Z
             */
            revokedAt: string | null;
            /** @description `pending` until the buyer has paid; `revoked` when all money went back. */
            status: components["schemas"]["PurchaseState"];
            store: components["schemas"]["PurchaseStore"];
            /**
             * @description Apple's transaction id, or Google's order number.
             * @example 2000000800000001
             */
            storeNumber: string | null;
            /**
             * @description The product's id at the store.
             * @example com.example.app.coins60
             */
            storeProductId: string | null;
        };
        /** @description One page of the list, newest first. */
        PurchaseCursorPage: {
            items: components["schemas"]["Purchase"][];
            /**
             * @description Send it as `cursor` to get the next page. Null at the end of the list.
             * @example AAAAAAAAACp9k2fQx1m0bY4sVwT7uLpH
             */
            nextCursor: string | null;
        };
        /**
         * @description The environment of a purchase. Those in the `sandbox` cost nothing.
         * @example production
         * @enum {string}
         */
        PurchaseEnvironment: "production" | "sandbox";
        /**
         * @description State of a purchase in an app store.
         * @example credited
         * @enum {string}
         */
        PurchaseState: "pending" | "credited" | "revoked" | "refused";
        /**
         * @description An app store.
         * @example apple
         * @enum {string}
         */
        PurchaseStore: "apple" | "google";
        /** @description An app that gets pushes. */
        PushDevice: {
            /**
             * Format: date-time
             * @example 2026-01-02T03:04:05.678Z
             */
            createdAt: string;
            /** @example 7 */
            id: string;
            service: components["schemas"]["PushService"];
            /**
             * Format: date-time
             * @description The last registration.
             * @example 2026-01-05T09:00:00.000Z
             */
            updatedAt: string;
        };
        /** @description The caller's apps that get pushes, newest first. */
        PushDevices: {
            items: components["schemas"]["PushDevice"][];
        };
        /**
         * @description A push service.
         * @example apns
         * @enum {string}
         */
        PushService: "apns" | "fcm" | "http";
        /** @description The decision about a question. */
        QuestionChecked: {
            /** @example true */
            allowed: boolean;
            contentType: components["schemas"]["ContentType"];
            /**
             * @description True if the external service failed and the local list decided instead.
             * @example false
             */
            degraded: boolean;
            /** @description The matches; for administrators only. */
            matches?: components["schemas"]["FoundWord"][];
            /**
             * @description The service that decided: `local`, or the external service's name.
             * @example local
             */
            provider: string;
        };
        /** @description A user's rating of an interpretation. */
        Rating: {
            /** @example true */
            helpful: boolean;
            /** @example 讲得很清楚。 */
            note: string | null;
            /**
             * Format: date-time
             * @example 2026-01-02T03:05:06.789Z
             */
            ratedAt: string;
        };
        /** @description The state of the service. */
        Readiness: {
            /**
             * Format: int64
             * @description Accounts suspended because their balance differs from their entries.
             * @example 0
             */
            accountsSuspended: number;
            /**
             * Format: date-time
             * @description Time of the last backup.
             * @example 2026-01-02T03:04:05.678Z
             */
            backupAt: string | null;
            backups: components["schemas"]["BackupState"];
            /**
             * @description `sound`, `damaged`, or `unchecked` until the first complete check.
             * @example sound
             */
            database: string;
            /**
             * Format: date-time
             * @description Time of the last complete check.
             * @example 2026-01-02T03:04:05.678Z
             */
            databaseCheckedAt: string | null;
            /**
             * @description `ok`, or `low` below the free space that raises an alert.
             * @example ok
             */
            disk: string;
            ledger: components["schemas"]["LedgerState"];
            /**
             * Format: date-time
             * @description Time of the last verification of the whole ledger.
             * @example 2026-01-02T03:04:05.678Z
             */
            ledgerVerifiedAt: string | null;
            /**
             * @description Providers that serve nobody: several calls in a row failed, or the provider rejects our key or account.
             * @example []
             */
            providersDown: string[];
            /** @example ready */
            status: string;
            /**
             * Format: int64
             * @description Queued writes.
             * @example 0
             */
            writesWaiting: number;
            /** @example 4096 */
            writesWaitingAtMost: number;
        };
        /** @description The last time at which all notifications were marked as read. */
        ReadMark: {
            /**
             * Format: date-time
             * @example 2026-01-02T09:04:05.678Z
             */
            readAt: string;
            /**
             * @description The id of the last notification that is read.
             * @example 42
             */
            through: string;
        };
        /** @description A number of records. */
        RecordCount: {
            /**
             * Format: int64
             * @example 1
             */
            count: number;
        };
        /** @description The result of one record of a batch. */
        RecordSaved: {
            /**
             * @description `history_full`, `history_too_large` or `version_conflict` for a record that was not saved.
             * @example null
             */
            error: string | null;
            /** @example a1b2c3 */
            localRecordId: string;
            record: components["schemas"]["HistoryRecord"] | null;
            /**
             * Format: date-time
             * @description Null if the record was not saved.
             * @example 2026-01-02T03:04:05.678Z
             */
            updatedAt: string | null;
            /**
             * @description Its new version. Null if it was not saved.
             * @example 42
             */
            version: string | null;
        };
        /** @description The results of a batch, in the order of the request. */
        RecordsSaved: {
            items: components["schemas"]["RecordSaved"][];
        };
        /** @description The token that replaces the old one. */
        RefreshedToken: {
            /**
             * Format: date-time
             * @example 2026-02-01T00:00:00.000Z
             */
            expiresAt: string;
            /** @example kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs */
            token: string;
        };
        /** @description The token that replaces the old one. */
        Renewed: {
            /**
             * Format: date-time
             * @example 2026-02-01T00:00:00.000Z
             */
            expiresAt: string;
            /** @example kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs */
            token: string;
        };
        /** @description A reported purchase, with the balance after it. */
        ReportedPurchase: {
            /**
             * Format: int64
             * @description The balance of the asset that it brings. Null while the buyer has not paid.
             * @example 60
             */
            balance: number | null;
            purchase: components["schemas"]["Purchase"];
        };
        /** @description The number of restored records. */
        Restored: {
            /**
             * Format: int64
             * @description Records that stay hidden because the user would otherwise have too many.
             * @example 0
             */
            hidden: number;
            /** @example 12 */
            restored: number;
        };
        /** @description The parameters of the page. */
        RouteParameters: Record<string, never>;
        /**
         * @description The part of a hexagram's text; `all_lines` is 用九 or 用六.
         * @example line
         * @enum {string}
         */
        SelectedPart: "judgement" | "line" | "all_lines";
        /** @description A text to read. */
        SelectedText: {
            /**
             * Format: int32
             * @description The number of the hexagram, of the primary or the relating one.
             * @example 3
             */
            hexagram: number;
            /** @example true */
            isMain: boolean;
            /**
             * @description The name of the line, or 用九 or 用六. Null for a judgement.
             * @example 上六
             */
            label: string | null;
            part: components["schemas"]["SelectedPart"];
            /**
             * @description The text in one plain sentence, in the user's language and script.
             * @example 骑着马徘徊不进，泪中带血，困到这一步难以长久。
             */
            plain: string;
            /**
             * Format: int32
             * @description The position of the line, 1 at the bottom. Null for other parts.
             * @example 6
             */
            position: number | null;
            text: components["schemas"]["ClassicalText"];
        };
        /**
         * @description The rule of 朱熹, named after the number of changing lines.
         * @example one_changing
         * @enum {string}
         */
        SelectionRule: "none_changing" | "one_changing" | "two_changing" | "three_changing" | "four_changing" | "five_changing" | "six_changing";
        /** @description A casting. */
        Session: {
            /**
             * Format: int64
             * @description The remaining points. Only in the response to a new casting.
             * @example 80
             */
            balance?: number;
            /**
             * Format: date-time
             * @example 2026-01-02T03:04:05.678Z
             */
            castAt: string;
            /** @description The chart, when one session is made or asked for. */
            chart?: components["schemas"]["Chart"];
            /** @description The classical texts, when one session is made or asked for. */
            classic?: components["schemas"]["Classic"];
            /**
             * Format: date-time
             * @example 2026-01-02T03:04:05.678Z
             */
            createdAt: string;
            /** @description The derivation of a casting by time or by numbers, when one session is made or asked for. */
            derivation?: components["schemas"]["Derivation"];
            hexagram: components["schemas"]["SessionHexagrams"];
            /** @example 9b1f7c0e2a4d4e6f8a0b1c2d3e4f5061 */
            id: string;
            /** @description The newest interpretation that succeeded, when one session is asked for. */
            interpretation?: components["schemas"]["Interpretation"];
            /** @description All interpretations that succeeded, newest first, when one session is made or asked for. */
            interpretations?: components["schemas"]["Interpretation"][];
            /**
             * Format: date-time
             * @description Time of the newest interpretation that succeeded.
             * @example 2026-01-02T03:05:06.789Z
             */
            interpretedAt: string | null;
            /**
             * @description From the bottom: 6 old yin, 7 young yang, 8 young yin, 9 old yang.
             * @example [
             *       7,
             *       8,
             *       8,
             *       8,
             *       7,
             *       6
             *     ]
             */
            lines: number[];
            method: components["schemas"]["CastingMethod"];
            /**
             * Format: int32
             * @description The points that the next interpretation costs, when one session is made or asked for.
             * @example 0
             */
            nextInterpretationPoints?: number;
            /**
             * @description The user's own note.
             * @example 三月面试后再看。
             */
            note: string | null;
            /**
             * Format: int64
             * @example 10
             */
            pointsSpent: number;
            /** @example 今年换工作合适吗？ */
            question: string;
            /** @example career */
            questionType: string | null;
            /**
             * Format: int32
             * @description The number of further interpretations that are possible, when one session is made or asked for.
             * @example 2
             */
            remainingInterpretations?: number;
            /** @example Asia/Shanghai */
            timeZone: string;
            /**
             * @description The user's own title.
             * @example 换工作
             */
            title: string | null;
        };
        /** @description One page of the list, newest first. */
        SessionCursorPage: {
            items: components["schemas"]["Session"][];
            /**
             * @description Send it as `cursor` to get the next page. Null at the end of the list.
             * @example AAAAAAAAACp9k2fQx1m0bY4sVwT7uLpH
             */
            nextCursor: string | null;
        };
        /** @description The hexagrams of six lines. */
        SessionHexagrams: {
            /**
             * @description Positions of the changing lines, 1 at the bottom.
             * @example [
             *       6
             *     ]
             */
            changing: number[];
            nuclear: components["schemas"]["Hexagram"];
            primary: components["schemas"]["Hexagram"];
            /** @description The hexagram after the changes. Absent when no line changes. */
            relating?: components["schemas"]["Hexagram"];
        };
        /**
         * @description The severity of a listed word.
         * @example medium
         * @enum {string}
         */
        Severity: "low" | "medium" | "high";
        /** @description A user who has just signed in. */
        SignedIn: {
            /**
             * Format: date-time
             * @example 2026-02-01T00:00:00.000Z
             */
            expiresAt: string;
            /** @description True if this sign-in created the account. */
            isNewUser: boolean;
            /**
             * @description Null for a user without one, who signed in with an identity.
             * @example 13800138000
             */
            phoneNumber: string | null;
            /**
             * @description The token for later requests, as `Authorization: Bearer <token>`.
             * @example kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs
             */
            token: string;
            /** @example 10001 */
            userId: string;
        };
        /** @description A user who has just signed in. */
        SignedInByEmail: {
            /**
             * Format: date-time
             * @example 2026-02-01T00:00:00.000Z
             */
            expiresAt: string;
            /** @description The outcome of the invite code, if one was sent. */
            invite?: components["schemas"]["InviteAtLogin"];
            /** @description True if this sign-in created the account. */
            isNewUser: boolean;
            /**
             * Format: int64
             * @description The sign-up bonus, granted once per address.
             * @example 100
             */
            pointsGranted: number;
            /**
             * Format: int64
             * @description Points restored from an earlier account.
             * @example 0
             */
            pointsRestored: number;
            /**
             * @description True if points of a deleted account were restored.
             * @example false
             */
            restored: boolean;
            /**
             * @description The token for later requests, as `Authorization: Bearer <token>`.
             * @example kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs
             */
            token: string;
            user: components["schemas"]["Account"];
        };
        /** @description The response after sign-out. */
        SignedOut: {
            /** @example true */
            loggedOut: boolean;
        };
        /** @description The data of an `error` event: a problem document and the delay that headers cannot carry any more. */
        StreamError: components["schemas"]["Problem"] & {
            /**
             * Format: int64
             * @description Seconds until a retry makes sense, as in `Retry-After`.
             * @example 30
             */
            retryAfter?: number;
        };
        /** @description The texts to read, by the seven rules of 朱熹. */
        TextSelection: {
            rule: components["schemas"]["SelectionRule"];
            /** @description The main text first. */
            texts: components["schemas"]["SelectedText"][];
        };
        /** @description One of the eight. */
        Trigram: {
            /** @example 坎 */
            chineseName: string;
            /** @example The Abysmal */
            englishName: string;
            /** @example kǎn */
            pinyin: string;
            /** @example ☵ */
            sign: string;
        };
        /** @description The number of unread notifications. */
        UnreadCount: {
            /** @example 3 */
            count: number;
        };
        /** @description The recommendation for a client. */
        UpdateAdvice: {
            latest: components["schemas"]["AppRelease"] | null;
            /**
             * @description True if a newer version exists.
             * @example true
             */
            updateAvailable: boolean;
            /**
             * @description True if the client must update before it continues.
             * @example false
             */
            updateRequired: boolean;
        };
        /** @description Tokens as counted by the provider; null if unknown. */
        Usage: {
            /**
             * Format: int64
             * @example 420
             */
            completionTokens: number | null;
            /**
             * Format: int64
             * @example 180
             */
            promptTokens: number | null;
        };
        /** @description The price of a use. */
        UsePrice: {
            asset: components["schemas"]["Asset"];
            /**
             * Format: int32
             * @example 10
             */
            count: number;
        };
        /** @description The prices of all uses. */
        UsePrices: {
            /** @description Each further interpretation of the same session. */
            anotherInterpretation: components["schemas"]["UsePrice"];
            /** @description A casting, with its first interpretation. */
            casting: components["schemas"]["UsePrice"];
            /** @description One use in the first API generation. */
            use: components["schemas"]["UsePrice"];
        };
        /** @description The state of a token. For an invalid one only `valid` is present. */
        Validity: {
            /**
             * Format: date-time
             * @example 2026-02-01T00:00:00.000Z
             */
            expiresAt?: string;
            /**
             * @description Null for a user who has only an email address.
             * @default null
             * @example 13800138000
             */
            phoneNumber: string | null;
            /**
             * @description True if the token was close to expiry and was extended.
             * @example false
             */
            refreshed?: boolean;
            /** @example kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs */
            token?: string;
            /** @example 10001 */
            userId?: string;
            /** @example true */
            valid: boolean;
        };
    };
    responses: {
        /** @description `invalid_request`, `conflicting_parameter`, `invalid_json` */
        "400-conflicting_parameter-invalid_json-invalid_request": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_request`, `conflicting_parameter`, `invalid_json` */
        "400-conflicting_parameter-invalid_json-invalid_request-Idempotency-Replayed": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_request`, `conflicting_parameter`, `invalid_json` */
        "400-conflicting_parameter-invalid_json-invalid_request-Idempotency-Replayed-Link-Sunset": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_request`, `conflicting_parameter`, `invalid_json` */
        "400-conflicting_parameter-invalid_json-invalid_request-Idempotency-Replayed-RateLimit-RateLimit-Policy": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_request`, `conflicting_parameter`, `invalid_json` */
        "400-conflicting_parameter-invalid_json-invalid_request-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_request`, `conflicting_parameter`, `invalid_json` */
        "400-conflicting_parameter-invalid_json-invalid_request-RateLimit-RateLimit-Policy": {
            headers: {
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_request`, `invalid_json` */
        "400-invalid_json-invalid_request": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_code` */
        "401-invalid_code-RateLimit-RateLimit-Policy": {
            headers: {
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `unauthenticated`, `invalid_code` */
        "401-invalid_code-unauthenticated": {
            headers: {
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_identity` */
        "401-invalid_identity": {
            headers: {
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_identity` */
        "401-invalid_identity-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `unauthenticated`, `invalid_identity` */
        "401-invalid_identity-unauthenticated": {
            headers: {
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `unauthenticated` */
        "401-unauthenticated": {
            headers: {
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `unauthenticated` */
        "401-unauthenticated-Idempotency-Replayed": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `unauthenticated` */
        "401-unauthenticated-Idempotency-Replayed-Link-Sunset": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `unauthenticated` */
        "401-unauthenticated-Idempotency-Replayed-RateLimit-RateLimit-Policy": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `unauthenticated` */
        "401-unauthenticated-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `unauthenticated` */
        "401-unauthenticated-RateLimit-RateLimit-Policy": {
            headers: {
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "WWW-Authenticate": components["headers"]["WWW-Authenticate"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `insufficient_coins` */
        "402-insufficient_coins-Idempotency-Replayed": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `insufficient_coins` */
        "402-insufficient_coins-Idempotency-Replayed-Link-Sunset": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `insufficient_points` */
        "402-insufficient_points-Idempotency-Replayed": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `insufficient_points` */
        "402-insufficient_points-Idempotency-Replayed-RateLimit-RateLimit-Policy": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `address_not_allowed` */
        "403-address_not_allowed": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `address_not_allowed`, `forbidden` */
        "403-address_not_allowed-forbidden": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `user_suspended`, `address_not_allowed`, `not_yours`, `forbidden`, `nickname_suspended` */
        "403-address_not_allowed-forbidden-nickname_suspended-not_yours-user_suspended-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `user_suspended`, `address_not_allowed`, `forbidden`, `nickname_suspended` */
        "403-address_not_allowed-forbidden-nickname_suspended-user_suspended": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `address_not_allowed`, `not_yours`, `forbidden` */
        "403-address_not_allowed-forbidden-not_yours": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `address_not_allowed`, `not_yours`, `forbidden` */
        "403-address_not_allowed-forbidden-not_yours-RateLimit-RateLimit-Policy": {
            headers: {
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `user_suspended`, `address_not_allowed`, `not_yours`, `forbidden`, `step_up_required` */
        "403-address_not_allowed-forbidden-not_yours-step_up_required-user_suspended-Idempotency-Replayed": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `user_suspended`, `address_not_allowed`, `not_yours`, `forbidden`, `step_up_required` */
        "403-address_not_allowed-forbidden-not_yours-step_up_required-user_suspended-Idempotency-Replayed-Link-Sunset": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `user_suspended`, `address_not_allowed`, `not_yours`, `forbidden` */
        "403-address_not_allowed-forbidden-not_yours-user_suspended": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `user_suspended`, `address_not_allowed`, `not_yours`, `forbidden` */
        "403-address_not_allowed-forbidden-not_yours-user_suspended-Idempotency-Replayed": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `user_suspended`, `address_not_allowed`, `not_yours`, `forbidden` */
        "403-address_not_allowed-forbidden-not_yours-user_suspended-Idempotency-Replayed-Link-Sunset": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `user_suspended`, `address_not_allowed`, `not_yours`, `forbidden` */
        "403-address_not_allowed-forbidden-not_yours-user_suspended-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `user_suspended`, `address_not_allowed`, `not_yours`, `forbidden` */
        "403-address_not_allowed-forbidden-not_yours-user_suspended-RateLimit-RateLimit-Policy": {
            headers: {
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `address_not_allowed`, `forbidden` */
        "403-address_not_allowed-forbidden-RateLimit-RateLimit-Policy": {
            headers: {
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `user_suspended`, `address_not_allowed`, `forbidden`, `step_up_required` */
        "403-address_not_allowed-forbidden-step_up_required-user_suspended": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `user_suspended`, `address_not_allowed`, `forbidden` */
        "403-address_not_allowed-forbidden-user_suspended": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `user_suspended`, `address_not_allowed`, `forbidden` */
        "403-address_not_allowed-forbidden-user_suspended-Idempotency-Replayed": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `user_suspended`, `address_not_allowed`, `forbidden` */
        "403-address_not_allowed-forbidden-user_suspended-Idempotency-Replayed-RateLimit-RateLimit-Policy": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `address_not_allowed`, `forbidden`, `user_suspended` */
        "403-address_not_allowed-forbidden-user_suspended-RateLimit-RateLimit-Policy": {
            headers: {
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `address_not_allowed`, `not_yours` */
        "403-address_not_allowed-not_yours": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `address_not_allowed`, `not_yours` */
        "403-address_not_allowed-not_yours-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `user_suspended`, `address_not_allowed`, `not_yours` */
        "403-address_not_allowed-not_yours-user_suspended": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `user_suspended`, `address_not_allowed`, `not_yours` */
        "403-address_not_allowed-not_yours-user_suspended-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `forbidden` */
        "403-forbidden": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `forbidden` */
        "403-forbidden-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `forbidden`, `user_suspended` */
        "403-forbidden-user_suspended": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `forbidden`, `user_suspended` */
        "403-forbidden-user_suspended-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `no_release` */
        "404-no_release": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `not_found` */
        "404-not_found": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `not_found` */
        "404-not_found-Idempotency-Replayed": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `not_found` */
        "404-not_found-Idempotency-Replayed-Link-Sunset": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `not_found` */
        "404-not_found-Idempotency-Replayed-RateLimit-RateLimit-Policy": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `not_found` */
        "404-not_found-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `not_found` */
        "404-not_found-RateLimit-RateLimit-Policy": {
            headers: {
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `unknown_invite` */
        "404-unknown_invite-Idempotency-Replayed": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `request_timeout` */
        "408-request_timeout": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `request_timeout` */
        "408-request_timeout-Idempotency-Replayed": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `request_timeout` */
        "408-request_timeout-Idempotency-Replayed-Link-Sunset": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `request_timeout` */
        "408-request_timeout-Idempotency-Replayed-RateLimit-RateLimit-Policy": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `request_timeout` */
        "408-request_timeout-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `request_timeout` */
        "408-request_timeout-RateLimit-RateLimit-Policy": {
            headers: {
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `address_taken` */
        "409-address_taken": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `own_invite`, `invite_expired`, `already_invited`, `balance_too_large` */
        "409-already_invited-balance_too_large-invite_expired-own_invite-Idempotency-Replayed": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `purchase_revoked`, `already_posted`, `balance_too_large`, `not_configured` */
        "409-already_posted-balance_too_large-not_configured-purchase_revoked": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `purchase_revoked`, `already_posted`, `balance_too_large`, `not_configured` */
        "409-already_posted-balance_too_large-not_configured-purchase_revoked-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `order_state`, `already_posted`, `balance_too_large` */
        "409-already_posted-balance_too_large-order_state": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `already_running` */
        "409-already_running": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `already_running`, `interpretation_limit` */
        "409-already_running-interpretation_limit-Idempotency-Replayed-RateLimit-RateLimit-Policy": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `not_configured`, `balance_too_large` */
        "409-balance_too_large-not_configured-Idempotency-Replayed": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `identity_taken`, `email_code_required`, `not_configured` */
        "409-email_code_required-identity_taken-not_configured": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `identity_taken`, `email_code_required`, `not_configured` */
        "409-email_code_required-identity_taken-not_configured-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `history_full`, `history_too_large`, `version_conflict` */
        "409-history_full-history_too_large-version_conflict": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `identity_taken`, `not_configured` */
        "409-identity_taken-not_configured": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `last_identity` */
        "409-last_identity": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `not_configured` */
        "409-not_configured": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `not_configured`, `order_state` */
        "409-not_configured-order_state": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `cursor_expired` */
        "410-cursor_expired": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `body_too_large` */
        "413-body_too_large": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `body_too_large` */
        "413-body_too_large-Idempotency-Replayed": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `body_too_large` */
        "413-body_too_large-Idempotency-Replayed-Link-Sunset": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `body_too_large` */
        "413-body_too_large-Idempotency-Replayed-RateLimit-RateLimit-Policy": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `body_too_large` */
        "413-body_too_large-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `body_too_large` */
        "413-body_too_large-RateLimit-RateLimit-Policy": {
            headers: {
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `unsupported_media_type` */
        "415-unsupported_media_type": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `unsupported_media_type` */
        "415-unsupported_media_type-Idempotency-Replayed": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `unsupported_media_type` */
        "415-unsupported_media_type-Idempotency-Replayed-Link-Sunset": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `unsupported_media_type` */
        "415-unsupported_media_type-Idempotency-Replayed-RateLimit-RateLimit-Policy": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `unsupported_media_type` */
        "415-unsupported_media_type-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `unsupported_media_type` */
        "415-unsupported_media_type-RateLimit-RateLimit-Policy": {
            headers: {
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_parameters`, `idempotency_key_reused`, `content_rejected` */
        "422-content_rejected-idempotency_key_reused-invalid_parameters-Idempotency-Replayed": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_parameters`, `idempotency_key_reused`, `content_rejected` */
        "422-content_rejected-idempotency_key_reused-invalid_parameters-Idempotency-Replayed-RateLimit-RateLimit-Policy": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_parameters`, `content_rejected` */
        "422-content_rejected-invalid_parameters": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_parameters`, `content_rejected` */
        "422-content_rejected-invalid_parameters-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_parameters`, `content_rejected` */
        "422-content_rejected-invalid_parameters-RateLimit-RateLimit-Policy": {
            headers: {
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_parameters`, `idempotency_key_reused` */
        "422-idempotency_key_reused-invalid_parameters-Idempotency-Replayed": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_parameters`, `idempotency_key_reused` */
        "422-idempotency_key_reused-invalid_parameters-Idempotency-Replayed-Link-Sunset": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_parameters` */
        "422-invalid_parameters": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_parameters` */
        "422-invalid_parameters-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_parameters`, `purchase_refused`, `unknown_package` */
        "422-invalid_parameters-purchase_refused-unknown_package": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_parameters`, `purchase_refused`, `unknown_package` */
        "422-invalid_parameters-purchase_refused-unknown_package-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_parameters` */
        "422-invalid_parameters-RateLimit-RateLimit-Policy": {
            headers: {
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_parameters`, `unknown_package` */
        "422-invalid_parameters-unknown_package-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `invalid_parameters`, `unknown_product` */
        "422-invalid_parameters-unknown_product": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `confirmation_required` */
        "428-confirmation_required-Idempotency-Replayed": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `confirmation_required` */
        "428-confirmation_required-Idempotency-Replayed-Link-Sunset": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `too_many_calls` */
        "429-too_many_calls-Link-RateLimit-RateLimit-Policy-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "Retry-After": components["headers"]["Retry-After"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `too_many_calls` */
        "429-too_many_calls-RateLimit-RateLimit-Policy": {
            headers: {
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `too_many_requests`, `too_many_calls` */
        "429-too_many_calls-too_many_requests-Idempotency-Replayed-RateLimit-RateLimit-Policy": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `too_many_requests`, `too_many_calls` */
        "429-too_many_calls-too_many_requests-RateLimit-RateLimit-Policy": {
            headers: {
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `too_many_requests` */
        "429-too_many_requests-Idempotency-Replayed-Link-RateLimit-RateLimit-Policy-Sunset": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                Link: components["headers"]["Link"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "Retry-After": components["headers"]["Retry-After"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `too_many_requests` */
        "429-too_many_requests-Idempotency-Replayed-RateLimit-RateLimit-Policy": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `too_many_requests` */
        "429-too_many_requests-Link-RateLimit-RateLimit-Policy-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "Retry-After": components["headers"]["Retry-After"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `too_many_requests` */
        "429-too_many_requests-RateLimit-RateLimit-Policy": {
            headers: {
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `internal` */
        "500-internal": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `internal` */
        "500-internal-Idempotency-Replayed": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `internal` */
        "500-internal-Idempotency-Replayed-Link-Sunset": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `internal` */
        "500-internal-Idempotency-Replayed-RateLimit-RateLimit-Policy": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `internal` */
        "500-internal-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `internal` */
        "500-internal-RateLimit-RateLimit-Policy": {
            headers: {
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `provider_failed` */
        "502-provider_failed": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `provider_failed` */
        "502-provider_failed-Idempotency-Replayed-RateLimit-RateLimit-Policy": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `provider_failed` */
        "502-provider_failed-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `provider_failed` */
        "502-provider_failed-RateLimit-RateLimit-Policy": {
            headers: {
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `overloaded`, `storage_failed`, `storage_full`, `superseded`, `outcome_unknown`, `moderation_unavailable`, `account_inconsistent`, `budget_spent`, `provider_unavailable` */
        "503-account_inconsistent-budget_spent-moderation_unavailable-outcome_unknown-overloaded-provider_unavailable-storage_failed-storage_full-superseded-Idempotency-Replayed-RateLimit-RateLimit-Policy": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `overloaded`, `storage_failed`, `storage_full`, `superseded`, `outcome_unknown`, `moderation_unavailable`, `account_inconsistent` */
        "503-account_inconsistent-moderation_unavailable-outcome_unknown-overloaded-storage_failed-storage_full-superseded-Idempotency-Replayed": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `overloaded`, `storage_failed`, `storage_full`, `superseded`, `outcome_unknown`, `account_inconsistent`, `provider_unavailable` */
        "503-account_inconsistent-outcome_unknown-overloaded-provider_unavailable-storage_failed-storage_full-superseded": {
            headers: {
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `overloaded`, `storage_failed`, `storage_full`, `superseded`, `outcome_unknown`, `account_inconsistent`, `provider_unavailable` */
        "503-account_inconsistent-outcome_unknown-overloaded-provider_unavailable-storage_failed-storage_full-superseded-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                "Retry-After": components["headers"]["Retry-After"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `overloaded`, `storage_failed`, `storage_full`, `superseded`, `outcome_unknown`, `account_inconsistent` */
        "503-account_inconsistent-outcome_unknown-overloaded-storage_failed-storage_full-superseded": {
            headers: {
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `overloaded`, `storage_failed`, `storage_full`, `superseded`, `outcome_unknown`, `account_inconsistent` */
        "503-account_inconsistent-outcome_unknown-overloaded-storage_failed-storage_full-superseded-Idempotency-Replayed": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `overloaded`, `storage_failed`, `storage_full`, `superseded`, `outcome_unknown`, `account_inconsistent` */
        "503-account_inconsistent-outcome_unknown-overloaded-storage_failed-storage_full-superseded-Idempotency-Replayed-Link-Sunset": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                Link: components["headers"]["Link"];
                "Retry-After": components["headers"]["Retry-After"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `overloaded`, `storage_failed`, `storage_full`, `superseded`, `outcome_unknown`, `account_inconsistent` */
        "503-account_inconsistent-outcome_unknown-overloaded-storage_failed-storage_full-superseded-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                "Retry-After": components["headers"]["Retry-After"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `overloaded`, `storage_failed`, `storage_full`, `superseded`, `outcome_unknown`, `account_inconsistent` */
        "503-account_inconsistent-outcome_unknown-overloaded-storage_failed-storage_full-superseded-RateLimit-RateLimit-Policy": {
            headers: {
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `overloaded`, `storage_failed`, `storage_full`, `superseded`, `outcome_unknown`, `moderation_unavailable`, `budget_spent`, `provider_unavailable` */
        "503-budget_spent-moderation_unavailable-outcome_unknown-overloaded-provider_unavailable-storage_failed-storage_full-superseded-RateLimit-RateLimit-Policy": {
            headers: {
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `overloaded`, `storage_failed`, `storage_full`, `superseded`, `outcome_unknown`, `moderation_unavailable` */
        "503-moderation_unavailable-outcome_unknown-overloaded-storage_failed-storage_full-superseded": {
            headers: {
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `overloaded`, `storage_failed`, `storage_full`, `superseded`, `outcome_unknown`, `moderation_unavailable` */
        "503-moderation_unavailable-outcome_unknown-overloaded-storage_failed-storage_full-superseded-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                "Retry-After": components["headers"]["Retry-After"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `overloaded`, `storage_failed`, `storage_full`, `superseded`, `outcome_unknown`, `provider_unavailable` */
        "503-outcome_unknown-overloaded-provider_unavailable-storage_failed-storage_full-superseded": {
            headers: {
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `overloaded`, `storage_failed`, `storage_full`, `superseded`, `outcome_unknown`, `provider_unavailable` */
        "503-outcome_unknown-overloaded-provider_unavailable-storage_failed-storage_full-superseded-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                "Retry-After": components["headers"]["Retry-After"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `overloaded`, `storage_failed`, `storage_full`, `superseded`, `outcome_unknown`, `provider_unavailable` */
        "503-outcome_unknown-overloaded-provider_unavailable-storage_failed-storage_full-superseded-RateLimit-RateLimit-Policy": {
            headers: {
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `overloaded`, `storage_failed`, `storage_full`, `superseded`, `outcome_unknown` */
        "503-outcome_unknown-overloaded-storage_failed-storage_full-superseded": {
            headers: {
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `overloaded`, `storage_failed`, `storage_full`, `superseded`, `outcome_unknown` */
        "503-outcome_unknown-overloaded-storage_failed-storage_full-superseded-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                "Retry-After": components["headers"]["Retry-After"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `overloaded`, `storage_failed`, `storage_full`, `superseded`, `outcome_unknown` */
        "503-outcome_unknown-overloaded-storage_failed-storage_full-superseded-RateLimit-RateLimit-Policy": {
            headers: {
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `overloaded`, `storage_failed`, `provider_unavailable` */
        "503-overloaded-provider_unavailable-storage_failed-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                "Retry-After": components["headers"]["Retry-After"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `overloaded`, `storage_failed` */
        "503-overloaded-storage_failed": {
            headers: {
                "Retry-After": components["headers"]["Retry-After"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `overloaded`, `storage_failed` */
        "503-overloaded-storage_failed-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                "Retry-After": components["headers"]["Retry-After"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `provider_timeout` */
        "504-provider_timeout": {
            headers: {
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `provider_timeout` */
        "504-provider_timeout-Idempotency-Replayed-RateLimit-RateLimit-Policy": {
            headers: {
                "Idempotency-Replayed": components["headers"]["Idempotency-Replayed"];
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `provider_timeout` */
        "504-provider_timeout-Link-Sunset": {
            headers: {
                Link: components["headers"]["Link"];
                Sunset: components["headers"]["Sunset"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
        /** @description `provider_timeout` */
        "504-provider_timeout-RateLimit-RateLimit-Policy": {
            headers: {
                RateLimit: components["headers"]["RateLimit"];
                "RateLimit-Policy": components["headers"]["RateLimit-Policy"];
                "X-Request-Id": components["headers"]["X-Request-Id"];
                [name: string]: unknown;
            };
            content: {
                "application/problem+json": components["schemas"]["Problem"];
            };
        };
    };
    parameters: never;
    requestBodies: never;
    headers: {
        /** @description `no-store`, or for public data how long it may be cached. */
        "Cache-Control": string;
        /** @description The suggested file name. */
        "Content-Disposition": string;
        /** @description The page loads nothing from other servers. */
        "Content-Security-Policy": string;
        /** @description The version of the response, for `If-None-Match`. */
        ETag: string;
        /** @description Set if this is the stored response to an earlier request with the same `Idempotency-Key`. */
        "Idempotency-Replayed": string;
        /** @description The endpoint that replaces this one, with `Sunset`. */
        Link: string;
        /** @description The target of the redirect. */
        Location: string;
        /** @description The limit that the caller is about to reach: requests left (`r`) and seconds until more are allowed (`t`). */
        RateLimit: string;
        /** @description The limits of the endpoint: requests (`q`) in seconds (`w`). */
        "RateLimit-Policy": string;
        /** @description Seconds to wait before a retry. */
        "Retry-After": string;
        /** @description The time from which the endpoint may be gone, if the operator has set one. */
        Sunset: string;
        /** @description How to send a token. */
        "WWW-Authenticate": string;
        /** @description The content type must not be guessed. */
        "X-Content-Type-Options": string;
        /** @description The request's id. A valid id sent by the client is kept. */
        "X-Request-Id": string;
    };
    pathItems: never;
}
export type $defs = Record<string, never>;
export interface operations {
    getAccount: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "birthday": "1990-05-17",
                     *       "coins": 0,
                     *       "createdAt": "2026-01-02T03:04:05.678Z",
                     *       "deletion": {
                     *         "coinsLost": 0,
                     *         "pointsKept": 100,
                     *         "pointsLost": 0
                     *       },
                     *       "email": "li.ming@example.com",
                     *       "gender": "female",
                     *       "id": "10001",
                     *       "identities": [
                     *         {
                     *           "lastUsedAt": "2026-01-05T09:00:00.000Z",
                     *           "linkedAt": "2026-01-02T03:04:05.678Z",
                     *           "provider": "apple"
                     *         }
                     *       ],
                     *       "nickname": "青山",
                     *       "phoneNumber": "13800138000",
                     *       "points": 100,
                     *       "signature": "心静则明"
                     *     }
                     */
                    "application/json": components["schemas"]["Account"];
                };
            };
        };
    };
    deleteAccount: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    updateAccount: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "birthday": "1990-05-17",
                 *       "gender": "female",
                 *       "nickname": "青山",
                 *       "signature": "心静则明"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description Date from 1900-01-01 to today. An empty text deletes it.
                     * @example 1990-05-17
                     */
                    birthday?: string;
                    /**
                     * @description `unknown`, `male`, `female` or `other`.
                     * @example female
                     */
                    gender?: components["schemas"]["Gender"];
                    /**
                     * @description Moderated. Unchanged if absent.
                     * @example 青山
                     */
                    nickname?: string;
                    /**
                     * @description Moderated. Unchanged if absent.
                     * @example 心静则明
                     */
                    signature?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "birthday": "1990-05-17",
                     *       "coins": 0,
                     *       "createdAt": "2026-01-02T03:04:05.678Z",
                     *       "deletion": {
                     *         "coinsLost": 0,
                     *         "pointsKept": 100,
                     *         "pointsLost": 0
                     *       },
                     *       "email": "li.ming@example.com",
                     *       "gender": "female",
                     *       "id": "10001",
                     *       "identities": [
                     *         {
                     *           "lastUsedAt": "2026-01-05T09:00:00.000Z",
                     *           "linkedAt": "2026-01-02T03:04:05.678Z",
                     *           "provider": "apple"
                     *         }
                     *       ],
                     *       "nickname": "青山",
                     *       "phoneNumber": "13800138000",
                     *       "points": 100,
                     *       "signature": "心静则明"
                     *     }
                     */
                    "application/json": components["schemas"]["Account"];
                };
            };
        };
    };
    changeAddress: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "code": "246810",
                 *       "phoneNumber": "13800138000"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The code sent to the new address for the purpose `address`.
                     * @example 246810
                     */
                    code: string;
                    /**
                     * Format: email
                     * @description The new email address. Send this or `phoneNumber`.
                     * @example li.ming@example.com
                     */
                    email?: string;
                    /**
                     * @description The new phone number. Send this or `email`.
                     * @example 13800138000
                     */
                    phoneNumber?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "birthday": "1990-05-17",
                     *       "coins": 0,
                     *       "createdAt": "2026-01-02T03:04:05.678Z",
                     *       "deletion": {
                     *         "coinsLost": 0,
                     *         "pointsKept": 100,
                     *         "pointsLost": 0
                     *       },
                     *       "email": "li.ming@example.com",
                     *       "gender": "female",
                     *       "id": "10001",
                     *       "identities": [
                     *         {
                     *           "lastUsedAt": "2026-01-05T09:00:00.000Z",
                     *           "linkedAt": "2026-01-02T03:04:05.678Z",
                     *           "provider": "apple"
                     *         }
                     *       ],
                     *       "nickname": "青山",
                     *       "phoneNumber": "13800138000",
                     *       "points": 100,
                     *       "signature": "心静则明"
                     *     }
                     */
                    "application/json": components["schemas"]["Account"];
                };
            };
        };
    };
    exportAccount: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The document. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "account": {
                     *         "id": "10001",
                     *         "nickname": "青山"
                     *       },
                     *       "history": [],
                     *       "points": []
                     *     }
                     */
                    "application/json": {
                        [key: string]: unknown;
                    };
                };
            };
        };
    };
    linkIdentity: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "idToken": "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
                 *       "provider": "apple"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The token of the SDK for number authentication, for `phone`.
                     * @example eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl
                     */
                    accessToken?: string;
                    /**
                     * @description The code that WeChat gave to the app, for `wechat`.
                     * @example eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl
                     */
                    code?: string;
                    /**
                     * @description The identity token, for `apple` and `google`. Each is good for one request.
                     * @example eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl
                     */
                    idToken?: string;
                    /**
                     * @description The nonce that the app chose for the identity token; for Apple the original, not its hash. Required if the token has one.
                     * @example n-0S6_WzA2Mj
                     */
                    nonce?: string;
                    /**
                     * @description `apple`, `google`, `wechat`, or `phone` for the number of the SIM card.
                     * @example apple
                     */
                    provider: components["schemas"]["ProofProvider"];
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "birthday": "1990-05-17",
                     *       "coins": 0,
                     *       "createdAt": "2026-01-02T03:04:05.678Z",
                     *       "deletion": {
                     *         "coinsLost": 0,
                     *         "pointsKept": 100,
                     *         "pointsLost": 0
                     *       },
                     *       "email": "li.ming@example.com",
                     *       "gender": "female",
                     *       "id": "10001",
                     *       "identities": [
                     *         {
                     *           "lastUsedAt": "2026-01-05T09:00:00.000Z",
                     *           "linkedAt": "2026-01-02T03:04:05.678Z",
                     *           "provider": "apple"
                     *         }
                     *       ],
                     *       "nickname": "青山",
                     *       "phoneNumber": "13800138000",
                     *       "points": 100,
                     *       "signature": "心静则明"
                     *     }
                     */
                    "application/json": components["schemas"]["Account"];
                };
            };
        };
    };
    unlinkIdentity: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The provider of the identity. */
                provider: components["schemas"]["IdentityProvider"];
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    signInByIdentity: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "idToken": "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
                 *       "provider": "apple"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The token of the SDK for number authentication, for `phone`.
                     * @example eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl
                     */
                    accessToken?: string;
                    /**
                     * @description The code that WeChat gave to the app, for `wechat`.
                     * @example eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl
                     */
                    code?: string;
                    /**
                     * @description Name of the device. Derived from the `User-Agent` if absent.
                     * @example Ming's phone
                     */
                    device?: string;
                    /**
                     * @description The identity token, for `apple` and `google`. Each is good for one request.
                     * @example eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl
                     */
                    idToken?: string;
                    /**
                     * @description Another user's invite code, redeemed with the sign-in. An invalid one does not fail the sign-in: see `invite` in the response.
                     * @example 7KQ4M2XD
                     */
                    inviteCode?: string;
                    /**
                     * @description The nonce that the app chose for the identity token; for Apple the original, not its hash. Required if the token has one.
                     * @example n-0S6_WzA2Mj
                     */
                    nonce?: string;
                    /**
                     * @description `apple`, `google`, `wechat`, or `phone` for the number of the SIM card.
                     * @example apple
                     */
                    provider: components["schemas"]["ProofProvider"];
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "expiresAt": "2026-02-01T00:00:00.000Z",
                     *       "invite": {
                     *         "pointsGranted": 20,
                     *         "redeemed": true,
                     *         "refusal": null
                     *       },
                     *       "isNewUser": true,
                     *       "pointsGranted": 100,
                     *       "pointsRestored": 0,
                     *       "restored": false,
                     *       "token": "kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs",
                     *       "user": {
                     *         "birthday": "1990-05-17",
                     *         "coins": 0,
                     *         "createdAt": "2026-01-02T03:04:05.678Z",
                     *         "deletion": {
                     *           "coinsLost": 0,
                     *           "pointsKept": 100,
                     *           "pointsLost": 0
                     *         },
                     *         "email": "li.ming@example.com",
                     *         "gender": "female",
                     *         "id": "10001",
                     *         "identities": [
                     *           {
                     *             "lastUsedAt": "2026-01-05T09:00:00.000Z",
                     *             "linkedAt": "2026-01-02T03:04:05.678Z",
                     *             "provider": "apple"
                     *           }
                     *         ],
                     *         "nickname": "青山",
                     *         "phoneNumber": "13800138000",
                     *         "points": 100,
                     *         "signature": "心静则明"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["SignedInByEmail"];
                };
            };
        };
    };
    signInByEmail: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "code": "13572468",
                 *       "email": "li.ming@example.com"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The code from the message.
                     * @example 13572468
                     */
                    code: string;
                    /**
                     * @description Name of the device. Derived from the `User-Agent` if absent.
                     * @example Ming's phone
                     */
                    device?: string;
                    /**
                     * Format: email
                     * @description The address that the code was sent to.
                     * @example li.ming@example.com
                     */
                    email: string;
                    /**
                     * @description Another user's invite code, redeemed with the sign-in. An invalid one does not fail the sign-in: see `invite` in the response.
                     * @example 7KQ4M2XD
                     */
                    inviteCode?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "expiresAt": "2026-02-01T00:00:00.000Z",
                     *       "invite": {
                     *         "pointsGranted": 20,
                     *         "redeemed": true,
                     *         "refusal": null
                     *       },
                     *       "isNewUser": true,
                     *       "pointsGranted": 100,
                     *       "pointsRestored": 0,
                     *       "restored": false,
                     *       "token": "kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs",
                     *       "user": {
                     *         "birthday": "1990-05-17",
                     *         "coins": 0,
                     *         "createdAt": "2026-01-02T03:04:05.678Z",
                     *         "deletion": {
                     *           "coinsLost": 0,
                     *           "pointsKept": 100,
                     *           "pointsLost": 0
                     *         },
                     *         "email": "li.ming@example.com",
                     *         "gender": "female",
                     *         "id": "10001",
                     *         "identities": [
                     *           {
                     *             "lastUsedAt": "2026-01-05T09:00:00.000Z",
                     *             "linkedAt": "2026-01-02T03:04:05.678Z",
                     *             "provider": "apple"
                     *           }
                     *         ],
                     *         "nickname": "青山",
                     *         "phoneNumber": "13800138000",
                     *         "points": 100,
                     *         "signature": "心静则明"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["SignedInByEmail"];
                };
            };
        };
    };
    signOut: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "token": "kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The token. Defaults to the one in the header.
                     * @example kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs
                     */
                    token?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "loggedOut": true
                     *     }
                     */
                    "application/json": components["schemas"]["SignedOut"];
                };
            };
        };
    };
    refreshToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "token": "kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The token. Defaults to the one in the header.
                     * @example kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs
                     */
                    token?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "expiresAt": "2026-02-01T00:00:00.000Z",
                     *       "token": "kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs"
                     *     }
                     */
                    "application/json": components["schemas"]["RefreshedToken"];
                };
            };
        };
    };
    sendEmailCode: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "email": "li.ming@example.com"
                 *     }
                 */
                "application/json": {
                    /**
                     * Format: email
                     * @description Address to send the code to.
                     * @example li.ming@example.com
                     */
                    email: string;
                    /**
                     * @description `sign_in` (default); `address` to add or change an account's address with `/api/v1/account/address`; `cancellation` to authorise the cancellation of an account.
                     * @example sign_in
                     */
                    purpose?: components["schemas"]["CodePurpose"];
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "email": "li.ming@example.com",
                     *       "expiresIn": 600,
                     *       "resendAfter": 60
                     *     }
                     */
                    "application/json": components["schemas"]["EmailCodeSent"];
                };
            };
        };
    };
    listDevices: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "createdAt": "2026-01-02T03:04:05.678Z",
                     *           "current": true,
                     *           "expiresAt": "2026-02-01T00:00:00.000Z",
                     *           "id": "9f2c1b7d03aa41c5",
                     *           "label": "Yarrow, iPhone",
                     *           "lastUsedAt": "2026-01-05T09:00:00.000Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["Devices"];
                };
            };
        };
    };
    signOutDevice: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The device's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    listChanges: {
        parameters: {
            query?: {
                /** @description Maximum number of rows. The largest possible by default. */
                limit?: number;
                /** @description `cursor` of the previous response. Without it, returns everything. */
                since?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "balances": {
                     *         "coins": 0,
                     *         "points": 100
                     *       },
                     *       "cursor": "AAABm3c2dQAAAAAAAAAAAA",
                     *       "deleted": [
                     *         {
                     *           "id": "9b1f7c0e2a4d4e6f8a0b1c2d3e4f5061",
                     *           "kind": "session"
                     *         }
                     *       ],
                     *       "history": [
                     *         {
                     *           "aiResult": "水雷屯：万事起头难……",
                     *           "createdAt": "2026-01-02T03:04:05.678Z",
                     *           "jsonData": null,
                     *           "localRecordId": "a1b2c3",
                     *           "phoneNumber": "13800138000",
                     *           "question": "今年换工作合适吗？",
                     *           "questionType": "career",
                     *           "timestamp": 1767225600000,
                     *           "updatedAt": "2026-01-02T03:04:05.678Z",
                     *           "userId": "10001",
                     *           "version": "42"
                     *         }
                     *       ],
                     *       "more": false,
                     *       "notifications": [
                     *         {
                     *           "body": "更新后即可使用。",
                     *           "createdAt": "2026-01-02T03:04:05.678Z",
                     *           "expiresAt": "2026-02-02T03:04:05.678Z",
                     *           "id": "42",
                     *           "kind": "activity",
                     *           "payload": {
                     *             "params": {
                     *               "id": "7"
                     *             },
                     *             "route": "sessions/detail",
                     *             "type": "open_route"
                     *           },
                     *           "readAt": "2026-01-02T09:04:05.678Z",
                     *           "title": "六十四卦全新解读"
                     *         }
                     *       ],
                     *       "preferences": {
                     *         "dayStart": "23:00",
                     *         "locale": "zh",
                     *         "notifications": {
                     *           "account": true,
                     *           "activity": true,
                     *           "promotion": false,
                     *           "system": true
                     *         },
                     *         "quietHours": "22:00-08:00",
                     *         "script": "traditional",
                     *         "timeZone": "Asia/Shanghai",
                     *         "updatedAt": "2026-01-02T03:04:05.678Z"
                     *       },
                     *       "readMark": {
                     *         "readAt": "2026-01-02T09:04:05.678Z",
                     *         "through": "42"
                     *       },
                     *       "sessions": [
                     *         {
                     *           "castAt": "2026-01-02T03:04:05.678Z",
                     *           "createdAt": "2026-01-02T03:04:05.678Z",
                     *           "hexagram": {
                     *             "changing": [
                     *               6
                     *             ],
                     *             "nuclear": {
                     *               "chineseFullName": "水雷屯",
                     *               "chineseName": "屯",
                     *               "englishName": "Difficulty at the Beginning",
                     *               "lower": {
                     *                 "chineseName": "坎",
                     *                 "englishName": "The Abysmal",
                     *                 "pinyin": "kǎn",
                     *                 "sign": "☵"
                     *               },
                     *               "number": 3,
                     *               "pinyin": "zhūn",
                     *               "sign": "䷂",
                     *               "upper": {
                     *                 "chineseName": "坎",
                     *                 "englishName": "The Abysmal",
                     *                 "pinyin": "kǎn",
                     *                 "sign": "☵"
                     *               }
                     *             },
                     *             "primary": {
                     *               "chineseFullName": "水雷屯",
                     *               "chineseName": "屯",
                     *               "englishName": "Difficulty at the Beginning",
                     *               "lower": {
                     *                 "chineseName": "坎",
                     *                 "englishName": "The Abysmal",
                     *                 "pinyin": "kǎn",
                     *                 "sign": "☵"
                     *               },
                     *               "number": 3,
                     *               "pinyin": "zhūn",
                     *               "sign": "䷂",
                     *               "upper": {
                     *                 "chineseName": "坎",
                     *                 "englishName": "The Abysmal",
                     *                 "pinyin": "kǎn",
                     *                 "sign": "☵"
                     *               }
                     *             }
                     *           },
                     *           "id": "9b1f7c0e2a4d4e6f8a0b1c2d3e4f5061",
                     *           "interpretedAt": "2026-01-02T03:05:06.789Z",
                     *           "lines": [
                     *             7,
                     *             8,
                     *             8,
                     *             8,
                     *             7,
                     *             6
                     *           ],
                     *           "method": "numbers",
                     *           "note": "三月面试后再看。",
                     *           "pointsSpent": 10,
                     *           "question": "今年换工作合适吗？",
                     *           "questionType": "career",
                     *           "timeZone": "Asia/Shanghai",
                     *           "title": "换工作"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["ChangeSet"];
                };
            };
        };
    };
    listPushDevices: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "createdAt": "2026-01-02T03:04:05.678Z",
                     *           "id": "7",
                     *           "service": "apns",
                     *           "updatedAt": "2026-01-05T09:00:00.000Z"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["PushDevices"];
                };
            };
        };
    };
    registerPushDevice: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "service": "apns",
                 *       "token": "0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The push service that issued the token.
                     * @example apns
                     */
                    service: components["schemas"]["PushService"];
                    /**
                     * @description The token that the service gave to the app.
                     * @example 0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f0f
                     */
                    token: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "createdAt": "2026-01-02T03:04:05.678Z",
                     *       "id": "7",
                     *       "service": "apns",
                     *       "updatedAt": "2026-01-05T09:00:00.000Z"
                     *     }
                     */
                    "application/json": components["schemas"]["PushDevice"];
                };
            };
        };
    };
    removePushDevice: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the registered app. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    listHexagrams: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "chineseFullName": "水雷屯",
                     *           "chineseName": "屯",
                     *           "englishName": "Difficulty at the Beginning",
                     *           "judgement": {
                     *             "simplified": "元亨，利贞。勿用有攸往，利建侯。",
                     *             "traditional": "元亨，利貞。勿用有攸往，利建侯。"
                     *           },
                     *           "lower": {
                     *             "chineseName": "震",
                     *             "englishName": "The Arousing",
                     *             "pinyin": "zhèn",
                     *             "sign": "☳"
                     *           },
                     *           "number": 3,
                     *           "pinyin": "zhūn",
                     *           "plain": "万物初生艰难，前景亨通而眼下不宜远行，先守正、立根基、找帮手。",
                     *           "sign": "䷂",
                     *           "traditionalName": "屯",
                     *           "upper": {
                     *             "chineseName": "坎",
                     *             "englishName": "The Abysmal",
                     *             "pinyin": "kǎn",
                     *             "sign": "☵"
                     *           }
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["HexagramList"];
                };
            };
        };
    };
    getHexagram: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The number in the order of King Wen, 1 to 64. */
                number: number;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "allLines": null,
                     *       "chineseFullName": "水雷屯",
                     *       "chineseName": "屯",
                     *       "commentary": {
                     *         "simplified": "屯，刚柔始交而难生，动乎险中，大亨贞。雷雨之动满盈，天造草昧，宜建侯而不宁。",
                     *         "traditional": "屯，剛柔始交而難生，動乎險中，大亨貞。雷雨之動滿盈，天造草昧，宜建侯而不寧。"
                     *       },
                     *       "englishName": "Difficulty at the Beginning",
                     *       "image": {
                     *         "simplified": "云雷，屯，君子以经纶。",
                     *         "traditional": "雲雷，屯，君子以經綸。"
                     *       },
                     *       "judgement": {
                     *         "simplified": "元亨，利贞。勿用有攸往，利建侯。",
                     *         "traditional": "元亨，利貞。勿用有攸往，利建侯。"
                     *       },
                     *       "lines": [
                     *         {
                     *           "image": {
                     *             "simplified": "虽磐桓，志行正也。以贵下贱，大得民也。",
                     *             "traditional": "雖磐桓，志行正也。以貴下賤，大得民也。"
                     *           },
                     *           "label": "初九",
                     *           "plain": "起步时徘徊难进，宜安居守正，先把人心和班底建立起来。",
                     *           "text": {
                     *             "simplified": "磐桓，利居贞，利建侯。",
                     *             "traditional": "磐桓，利居貞，利建侯。"
                     *           }
                     *         },
                     *         {
                     *           "image": {
                     *             "simplified": "六二之难，乘刚也。十年乃字，反常也。",
                     *             "traditional": "六二之難，乘剛也。十年乃字，反常也。"
                     *           },
                     *           "label": "六二",
                     *           "plain": "车马徘徊，来的不是强盗而是求婚的人，女子守正，十年后才许嫁。",
                     *           "text": {
                     *             "simplified": "屯如邅如，乘马班如。匪寇婚媾。女子贞不字，十年乃字。",
                     *             "traditional": "屯如邅如，乘馬班如。匪寇婚媾。女子貞不字，十年乃字。"
                     *           }
                     *         },
                     *         {
                     *           "image": {
                     *             "simplified": "即鹿无虞，以从禽也。君子舍之，往吝穷也。",
                     *             "traditional": "即鹿无虞，以從禽也。君子舍之，往吝窮也。"
                     *           },
                     *           "label": "六三",
                     *           "plain": "追鹿却没有向导，只会迷进林子，不如及早放手，硬追会有遗憾。",
                     *           "text": {
                     *             "simplified": "即鹿无虞，惟入于林中。君子几不如舍，往吝。",
                     *             "traditional": "即鹿无虞，惟入于林中。君子幾不如舍，往吝。"
                     *           }
                     *         },
                     *         {
                     *           "image": {
                     *             "simplified": "求而往，明也。",
                     *             "traditional": "求而往，明也。"
                     *           },
                     *           "label": "六四",
                     *           "plain": "乘马徘徊而去求婚，主动求合得其人，前往则吉，没有不利。",
                     *           "text": {
                     *             "simplified": "乘马班如，求婚媾。往吉，无不利。",
                     *             "traditional": "乘馬班如，求婚媾。往吉，无不利。"
                     *           }
                     *         },
                     *         {
                     *           "image": {
                     *             "simplified": "屯其膏，施未光也。",
                     *             "traditional": "屯其膏，施未光也。"
                     *           },
                     *           "label": "九五",
                     *           "plain": "恩泽积着难以施开，办小事守正可吉，办大事硬来多半不好。",
                     *           "text": {
                     *             "simplified": "屯其膏。小贞吉，大贞凶。",
                     *             "traditional": "屯其膏。小貞吉，大貞凶。"
                     *           }
                     *         },
                     *         {
                     *           "image": {
                     *             "simplified": "泣血涟如，何可长也？",
                     *             "traditional": "泣血漣如，何可長也？"
                     *           },
                     *           "label": "上六",
                     *           "plain": "骑马徘徊，哭得血泪涟涟，困在尽头不是长久之计，该另寻出路。",
                     *           "text": {
                     *             "simplified": "乘马班如，泣血涟如。",
                     *             "traditional": "乘馬班如，泣血漣如。"
                     *           }
                     *         }
                     *       ],
                     *       "lower": {
                     *         "chineseName": "震",
                     *         "englishName": "The Arousing",
                     *         "pinyin": "zhèn",
                     *         "sign": "☳"
                     *       },
                     *       "number": 3,
                     *       "pinyin": "zhūn",
                     *       "plain": "万物初生艰难，前景亨通而眼下不宜远行，先守正、立根基、找帮手。",
                     *       "sign": "䷂",
                     *       "traditionalName": "屯",
                     *       "upper": {
                     *         "chineseName": "坎",
                     *         "englishName": "The Abysmal",
                     *         "pinyin": "kǎn",
                     *         "sign": "☵"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["HexagramTexts"];
                };
            };
        };
    };
    rateInterpretation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The trace id of the interpretation. */
                traceId: string;
            };
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "helpful": true
                 *     }
                 */
                "application/json": {
                    /**
                     * @description True if the interpretation was helpful.
                     * @example true
                     */
                    helpful: boolean;
                    /**
                     * @description A note to the operators. Moderated. Without one, an earlier note is deleted.
                     * @example 讲得很清楚。
                     */
                    note?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "helpful": true,
                     *       "note": "讲得很清楚。",
                     *       "ratedAt": "2026-01-02T03:05:06.789Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Rating"];
                };
            };
        };
    };
    getInvite: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "code": "7KQ4M2XD",
                     *       "inviteBonus": 20,
                     *       "invited": 3,
                     *       "inviteeBonus": 20,
                     *       "redeemableUntil": "2026-01-09T03:04:05.678Z",
                     *       "redeemedAt": "2026-01-02T03:04:05.678Z",
                     *       "rewarded": 3,
                     *       "rewardedLimit": 50
                     *     }
                     */
                    "application/json": components["schemas"]["Invite"];
                };
            };
        };
    };
    redeemInvite: {
        parameters: {
            query?: never;
            header?: {
                /** @description A text chosen by the client. A repeated request with the same key is executed once; repetitions get the first response with `Idempotency-Replayed: true`. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "code": "7KQ4M2XD"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description Another user's invite code. Case, spaces and hyphens are ignored.
                     * @example 7KQ4M2XD
                     */
                    code: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "balance": 120,
                     *       "pointsGranted": 20
                     *     }
                     */
                    "application/json": components["schemas"]["InviteRedeemed"];
                };
            };
        };
    };
    listNotifications: {
        parameters: {
            query?: {
                /** @description `nextCursor` of the previous response. Without it, starts with the newest. */
                cursor?: string;
                /** @description Maximum notifications in the response. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "body": "更新后即可使用。",
                     *           "createdAt": "2026-01-02T03:04:05.678Z",
                     *           "expiresAt": "2026-02-02T03:04:05.678Z",
                     *           "id": "42",
                     *           "kind": "activity",
                     *           "payload": {
                     *             "params": {
                     *               "id": "7"
                     *             },
                     *             "route": "sessions/detail",
                     *             "type": "open_route"
                     *           },
                     *           "readAt": "2026-01-02T09:04:05.678Z",
                     *           "title": "六十四卦全新解读"
                     *         }
                     *       ],
                     *       "nextCursor": "AAAAAAAAACp9k2fQx1m0bY4sVwT7uLpH"
                     *     }
                     */
                    "application/json": components["schemas"]["NotificationCursorPage"];
                };
            };
        };
    };
    markNotificationRead: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description Id of the notification. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "body": "更新后即可使用。",
                     *       "createdAt": "2026-01-02T03:04:05.678Z",
                     *       "expiresAt": "2026-02-02T03:04:05.678Z",
                     *       "id": "42",
                     *       "kind": "activity",
                     *       "payload": {
                     *         "params": {
                     *           "id": "7"
                     *         },
                     *         "route": "sessions/detail",
                     *         "type": "open_route"
                     *       },
                     *       "readAt": "2026-01-02T09:04:05.678Z",
                     *       "title": "六十四卦全新解读"
                     *     }
                     */
                    "application/json": components["schemas"]["Notification"];
                };
            };
        };
    };
    markAllNotificationsRead: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "count": 0,
                     *       "marked": 3
                     *     }
                     */
                    "application/json": components["schemas"]["MarkedRead"];
                };
            };
        };
    };
    streamNotifications: {
        parameters: {
            query?: never;
            header?: {
                /** @description The id of the last event that the client has received. The stream continues after it. */
                "Last-Event-ID"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "balances": {
                     *         "coins": 0,
                     *         "points": 100
                     *       },
                     *       "unread": 3
                     *     }
                     */
                    "application/json": components["schemas"]["InboxState"];
                    "text/event-stream": unknown;
                };
            };
        };
    };
    countUnreadNotifications: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "count": 3
                     *     }
                     */
                    "application/json": components["schemas"]["UnreadCount"];
                };
            };
        };
    };
    listOrders: {
        parameters: {
            query?: {
                /** @description `nextCursor` of the previous response. */
                cursor?: string;
                /** @description Maximum number of orders. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "amount": "6.00",
                     *           "asset": "coin",
                     *           "bonus": 0,
                     *           "channel": "alipay",
                     *           "closedAt": "2026-01-03T04:04:05.678Z",
                     *           "coinCount": 600,
                     *           "count": 600,
                     *           "createdAt": "2026-01-02T03:04:05.678Z",
                     *           "creditedAt": "2026-01-02T03:05:06.678Z",
                     *           "currency": "CNY",
                     *           "expiresAt": "2026-01-02T03:34:05.678Z",
                     *           "orderNo": "202601020123456789012345",
                     *           "paid": "6.00",
                     *           "paidAt": "2026-01-02T03:05:05.678Z",
                     *           "productId": "points_600",
                     *           "refunded": "0.00",
                     *           "refundedAt": "2026-01-04T03:04:05.678Z",
                     *           "returned": 0,
                     *           "status": "credited",
                     *           "subject": "600 points",
                     *           "tradeNo": "2026010222001400000000000001",
                     *           "userId": "10001"
                     *         }
                     *       ],
                     *       "nextCursor": "AAAAAAAAACp9k2fQx1m0bY4sVwT7uLpH"
                     *     }
                     */
                    "application/json": components["schemas"]["OrderCursorPage"];
                };
            };
        };
    };
    createOrder: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "productId": "points_600"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The channel of the payment. By default the first of `payment.channels`.
                     * @example sandbox
                     */
                    channel?: components["schemas"]["PaymentChannel"];
                    /**
                     * @description The program in which the buyer pays, for WeChat Pay: `app` by default.
                     * @example app
                     */
                    client?: components["schemas"]["PayerClient"];
                    /**
                     * @description The buyer's id in WeChat, for `jsapi`.
                     * @example oUpF8uMuAJO_M2pxb1Q9zNjWeS6o
                     */
                    openId?: string;
                    /**
                     * @description The product, from the list of products.
                     * @example points_600
                     */
                    productId: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "amount": "6.00",
                     *       "asset": "coin",
                     *       "bonus": 0,
                     *       "channel": "alipay",
                     *       "closedAt": "2026-01-03T04:04:05.678Z",
                     *       "coinCount": 600,
                     *       "count": 600,
                     *       "createdAt": "2026-01-02T03:04:05.678Z",
                     *       "creditedAt": "2026-01-02T03:05:06.678Z",
                     *       "currency": "CNY",
                     *       "expiresAt": "2026-01-02T03:34:05.678Z",
                     *       "orderNo": "202601020123456789012345",
                     *       "orderString": "method=alipay.trade.app.pay&app_id=sandbox&charset=utf-8&…",
                     *       "paid": "6.00",
                     *       "paidAt": "2026-01-02T03:05:05.678Z",
                     *       "payment": {
                     *         "url": "https://checkout.stripe.com/c/pay/cs_1"
                     *       },
                     *       "productId": "points_600",
                     *       "refunded": "0.00",
                     *       "refundedAt": "2026-01-04T03:04:05.678Z",
                     *       "returned": 0,
                     *       "status": "credited",
                     *       "subject": "600 points",
                     *       "tradeNo": "2026010222001400000000000001",
                     *       "userId": "10001"
                     *     }
                     */
                    "application/json": components["schemas"]["NewOrder"];
                };
            };
        };
    };
    getOrder: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The order. */
                orderNo: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "amount": "6.00",
                     *       "asset": "coin",
                     *       "bonus": 0,
                     *       "channel": "alipay",
                     *       "closedAt": "2026-01-03T04:04:05.678Z",
                     *       "coinCount": 600,
                     *       "count": 600,
                     *       "createdAt": "2026-01-02T03:04:05.678Z",
                     *       "creditedAt": "2026-01-02T03:05:06.678Z",
                     *       "currency": "CNY",
                     *       "expiresAt": "2026-01-02T03:34:05.678Z",
                     *       "orderNo": "202601020123456789012345",
                     *       "paid": "6.00",
                     *       "paidAt": "2026-01-02T03:05:05.678Z",
                     *       "productId": "points_600",
                     *       "refunded": "0.00",
                     *       "refundedAt": "2026-01-04T03:04:05.678Z",
                     *       "returned": 0,
                     *       "status": "credited",
                     *       "subject": "600 points",
                     *       "tradeNo": "2026010222001400000000000001",
                     *       "userId": "10001"
                     *     }
                     */
                    "application/json": components["schemas"]["Order"];
                };
            };
        };
    };
    confirmOrder: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The order. */
                orderNo: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The order. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "amount": "6.00",
                     *       "asset": "coin",
                     *       "bonus": 0,
                     *       "channel": "alipay",
                     *       "closedAt": "2026-01-03T04:04:05.678Z",
                     *       "coinCount": 600,
                     *       "count": 600,
                     *       "createdAt": "2026-01-02T03:04:05.678Z",
                     *       "creditedAt": "2026-01-02T03:05:06.678Z",
                     *       "currency": "CNY",
                     *       "expiresAt": "2026-01-02T03:34:05.678Z",
                     *       "orderNo": "202601020123456789012345",
                     *       "paid": "6.00",
                     *       "paidAt": "2026-01-02T03:05:05.678Z",
                     *       "productId": "points_600",
                     *       "refunded": "0.00",
                     *       "refundedAt": "2026-01-04T03:04:05.678Z",
                     *       "returned": 0,
                     *       "status": "credited",
                     *       "subject": "600 points",
                     *       "tradeNo": "2026010222001400000000000001",
                     *       "userId": "10001"
                     *     }
                     */
                    "application/json": components["schemas"]["Order"];
                };
            };
            /** @description The order is not paid yet, or the provider is unavailable; a later check follows. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "amount": "6.00",
                     *       "asset": "coin",
                     *       "bonus": 0,
                     *       "channel": "alipay",
                     *       "closedAt": "2026-01-03T04:04:05.678Z",
                     *       "coinCount": 600,
                     *       "count": 600,
                     *       "createdAt": "2026-01-02T03:04:05.678Z",
                     *       "creditedAt": "2026-01-02T03:05:06.678Z",
                     *       "currency": "CNY",
                     *       "expiresAt": "2026-01-02T03:34:05.678Z",
                     *       "orderNo": "202601020123456789012345",
                     *       "paid": "6.00",
                     *       "paidAt": "2026-01-02T03:05:05.678Z",
                     *       "productId": "points_600",
                     *       "refunded": "0.00",
                     *       "refundedAt": "2026-01-04T03:04:05.678Z",
                     *       "returned": 0,
                     *       "status": "credited",
                     *       "subject": "600 points",
                     *       "tradeNo": "2026010222001400000000000001",
                     *       "userId": "10001"
                     *     }
                     */
                    "application/json": components["schemas"]["Order"];
                };
            };
        };
    };
    payOrderInSandbox: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The order. */
                orderNo: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "amount": "6.00",
                     *       "asset": "coin",
                     *       "bonus": 0,
                     *       "channel": "alipay",
                     *       "closedAt": "2026-01-03T04:04:05.678Z",
                     *       "coinCount": 600,
                     *       "count": 600,
                     *       "createdAt": "2026-01-02T03:04:05.678Z",
                     *       "creditedAt": "2026-01-02T03:05:06.678Z",
                     *       "currency": "CNY",
                     *       "expiresAt": "2026-01-02T03:34:05.678Z",
                     *       "orderNo": "202601020123456789012345",
                     *       "paid": "6.00",
                     *       "paidAt": "2026-01-02T03:05:05.678Z",
                     *       "productId": "points_600",
                     *       "refunded": "0.00",
                     *       "refundedAt": "2026-01-04T03:04:05.678Z",
                     *       "returned": 0,
                     *       "status": "credited",
                     *       "subject": "600 points",
                     *       "tradeNo": "2026010222001400000000000001",
                     *       "userId": "10001"
                     *     }
                     */
                    "application/json": components["schemas"]["Order"];
                };
            };
        };
    };
    getStoreAccountToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "accountToken": "7e3fb20b-4cdb-47cc-936d-99d65f608138",
                     *       "obfuscatedAccountId": "7e3fb20b4cdb47cc936d99d65f608138"
                     *     }
                     */
                    "application/json": components["schemas"]["AccountToken"];
                };
            };
        };
    };
    pointBalance: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "balance": 90
                     *     }
                     */
                    "application/json": components["schemas"]["PointBalance"];
                };
            };
        };
    };
    exchangeCoins: {
        parameters: {
            query?: never;
            header?: {
                /** @description A text chosen by the client. A repeated request with the same key is executed once; repetitions get the first response with `Idempotency-Replayed: true`. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "coins": 60
                 *     }
                 */
                "application/json": {
                    /**
                     * @description Coins to exchange.
                     * @example 60
                     */
                    coins: number;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "coinBalance": 50,
                     *       "coins": 10,
                     *       "pointBalance": 190,
                     *       "points": 100
                     *     }
                     */
                    "application/json": components["schemas"]["CoinsExchanged"];
                };
            };
        };
    };
    listPointEntries: {
        parameters: {
            query?: {
                /** @description `nextCursor` of the previous response. */
                cursor?: string;
                /** @description Maximum number of entries. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "asset": "coin",
                     *           "balanceAfter": 90,
                     *           "createdAt": "2026-01-02T03:04:05.678Z",
                     *           "delta": -10,
                     *           "kind": "topup",
                     *           "ref": "session:9b1f7c0e2a4d4e6f8a0b1c2d3e4f5061",
                     *           "seq": 2,
                     *           "sequence": 2
                     *         }
                     *       ],
                     *       "nextCursor": "AAAAAAAAACp9k2fQx1m0bY4sVwT7uLpH"
                     *     }
                     */
                    "application/json": components["schemas"]["PointEntryCursorPage"];
                };
            };
        };
    };
    getPreferences: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "dayStart": "23:00",
                     *       "locale": "zh",
                     *       "notifications": {
                     *         "account": true,
                     *         "activity": true,
                     *         "promotion": false,
                     *         "system": true
                     *       },
                     *       "quietHours": "22:00-08:00",
                     *       "script": "traditional",
                     *       "timeZone": "Asia/Shanghai",
                     *       "updatedAt": "2026-01-02T03:04:05.678Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Preferences"];
                };
            };
        };
    };
    updatePreferences: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "dayStart": "23:00",
                 *       "locale": "zh",
                 *       "notifications": {
                 *         "promotion": false
                 *       },
                 *       "quietHours": "22:00-08:00",
                 *       "script": "traditional",
                 *       "timeZone": "Asia/Shanghai"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The time at which the next day begins in charts of new castings: `23:00` or `00:00`.
                     * @example 23:00
                     */
                    dayStart?: components["schemas"]["DayStart"];
                    /**
                     * @description The language of messages. An empty text resets it. `zh-TW`, `zh-HK` and `zh-Hant` also choose the traditional script, `zh-CN` and `zh-Hans` the simplified one.
                     * @example zh
                     */
                    locale?: components["schemas"]["Locale"];
                    /**
                     * @description Kinds of notification to switch on or off. `system` is always on.
                     * @example {
                     *       "promotion": false
                     *     }
                     */
                    notifications?: {
                        account?: boolean;
                        activity?: boolean;
                        promotion?: boolean;
                        system?: boolean;
                    };
                    /**
                     * @description Hours of the day without pushes, in the time zone: `22:00-08:00`. An empty text resets them.
                     * @example 22:00-08:00
                     */
                    quietHours?: string;
                    /**
                     * @description The script of readings, pictures and messages in Chinese: `simplified` or `traditional`. An empty text resets it; `Accept-Language` (`zh-TW`, `zh-HK`, `zh-Hant`) then decides.
                     * @example traditional
                     */
                    script?: components["schemas"]["ChineseScript"];
                    /**
                     * @description Time zone: an IANA name, or an offset such as `+08:00`. An empty text resets it.
                     * @example Asia/Shanghai
                     */
                    timeZone?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "dayStart": "23:00",
                     *       "locale": "zh",
                     *       "notifications": {
                     *         "account": true,
                     *         "activity": true,
                     *         "promotion": false,
                     *         "system": true
                     *       },
                     *       "quietHours": "22:00-08:00",
                     *       "script": "traditional",
                     *       "timeZone": "Asia/Shanghai",
                     *       "updatedAt": "2026-01-02T03:04:05.678Z"
                     *     }
                     */
                    "application/json": components["schemas"]["Preferences"];
                };
            };
        };
    };
    listProducts: {
        parameters: {
            query?: {
                /** @description Only products that bring this. */
                asset?: components["schemas"]["Asset"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "appleId": null,
                     *           "asset": "coin",
                     *           "bonus": 0,
                     *           "channels": [
                     *             {
                     *               "channel": "alipay",
                     *               "currency": "CNY",
                     *               "price": "6.00"
                     *             }
                     *           ],
                     *           "count": 600,
                     *           "currency": "CNY",
                     *           "description": null,
                     *           "firstBonus": 0,
                     *           "googleId": null,
                     *           "id": "points_600",
                     *           "price": "6.00",
                     *           "subject": "600 points"
                     *         }
                     *       ],
                     *       "pointsPerCoin": 0,
                     *       "prices": {
                     *         "anotherInterpretation": {
                     *           "asset": "coin",
                     *           "count": 10
                     *         },
                     *         "casting": {
                     *           "asset": "coin",
                     *           "count": 10
                     *         },
                     *         "use": {
                     *           "asset": "coin",
                     *           "count": 10
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["ProductList"];
                };
            };
        };
    };
    listPurchases: {
        parameters: {
            query?: {
                /** @description `nextCursor` of the previous response. */
                cursor?: string;
                /** @description Maximum number of purchases. */
                limit?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "asset": "coin",
                     *           "bonus": 0,
                     *           "count": 60,
                     *           "creditedAt": "2026-01-02T03:04:06.678Z",
                     *           "environment": "production",
                     *           "id": "17",
                     *           "productId": "coins_60",
                     *           "purchasedAt": "2026-01-02T03:04:05.678Z",
                     *           "quantity": 1,
                     *           "returned": 0,
                     *           "revokedAt": "2026-01-04T03:04:05.678Z",
                     *           "status": "credited",
                     *           "store": "apple",
                     *           "storeNumber": "2000000800000001",
                     *           "storeProductId": "com.example.app.coins60"
                     *         }
                     *       ],
                     *       "nextCursor": "AAAAAAAAACp9k2fQx1m0bY4sVwT7uLpH"
                     *     }
                     */
                    "application/json": components["schemas"]["PurchaseCursorPage"];
                };
            };
        };
    };
    reportApplePurchase: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "signedTransaction": "eyJhbGciOiJFUzI1NiIsIng1YyI6W10fQ.eyJ0cmFuc2FjdGlvbklkIjoiMSJ9.c2lnbmF0dXJl"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The user's consent that Apple is told how much of a purchase was used, when a refund is asked for. Absent: unchanged.
                     * @example true
                     */
                    sharesConsumption?: boolean;
                    /**
                     * @description The `jwsRepresentation` of the StoreKit 2 transaction.
                     * @example eyJhbGciOiJFUzI1NiIsIng1YyI6W10fQ.eyJ0cmFuc2FjdGlvbklkIjoiMSJ9.c2lnbmF0dXJl
                     */
                    signedTransaction: string;
                };
            };
        };
        responses: {
            /** @description The purchase is credited. Finish it in the app. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "balance": 60,
                     *       "purchase": {
                     *         "asset": "coin",
                     *         "bonus": 0,
                     *         "count": 60,
                     *         "creditedAt": "2026-01-02T03:04:06.678Z",
                     *         "environment": "production",
                     *         "id": "17",
                     *         "productId": "coins_60",
                     *         "purchasedAt": "2026-01-02T03:04:05.678Z",
                     *         "quantity": 1,
                     *         "returned": 0,
                     *         "revokedAt": "2026-01-04T03:04:05.678Z",
                     *         "status": "credited",
                     *         "store": "apple",
                     *         "storeNumber": "2000000800000001",
                     *         "storeProductId": "com.example.app.coins60"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["ReportedPurchase"];
                };
            };
            /** @description The buyer has not paid yet. It is credited later. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "balance": 60,
                     *       "purchase": {
                     *         "asset": "coin",
                     *         "bonus": 0,
                     *         "count": 60,
                     *         "creditedAt": "2026-01-02T03:04:06.678Z",
                     *         "environment": "production",
                     *         "id": "17",
                     *         "productId": "coins_60",
                     *         "purchasedAt": "2026-01-02T03:04:05.678Z",
                     *         "quantity": 1,
                     *         "returned": 0,
                     *         "revokedAt": "2026-01-04T03:04:05.678Z",
                     *         "status": "credited",
                     *         "store": "apple",
                     *         "storeNumber": "2000000800000001",
                     *         "storeProductId": "com.example.app.coins60"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["ReportedPurchase"];
                };
            };
        };
    };
    reportGooglePurchase: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "productId": "com.example.coins60",
                 *       "purchaseToken": "abcdefghijklmnop.AO-J1Oz_example"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The product id at Google Play.
                     * @example com.example.coins60
                     */
                    productId: string;
                    /**
                     * @description The purchase token.
                     * @example abcdefghijklmnop.AO-J1Oz_example
                     */
                    purchaseToken: string;
                };
            };
        };
        responses: {
            /** @description The purchase is credited. Finish it in the app. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "balance": 60,
                     *       "purchase": {
                     *         "asset": "coin",
                     *         "bonus": 0,
                     *         "count": 60,
                     *         "creditedAt": "2026-01-02T03:04:06.678Z",
                     *         "environment": "production",
                     *         "id": "17",
                     *         "productId": "coins_60",
                     *         "purchasedAt": "2026-01-02T03:04:05.678Z",
                     *         "quantity": 1,
                     *         "returned": 0,
                     *         "revokedAt": "2026-01-04T03:04:05.678Z",
                     *         "status": "credited",
                     *         "store": "apple",
                     *         "storeNumber": "2000000800000001",
                     *         "storeProductId": "com.example.app.coins60"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["ReportedPurchase"];
                };
            };
            /** @description The buyer has not paid yet. It is credited later. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "balance": 60,
                     *       "purchase": {
                     *         "asset": "coin",
                     *         "bonus": 0,
                     *         "count": 60,
                     *         "creditedAt": "2026-01-02T03:04:06.678Z",
                     *         "environment": "production",
                     *         "id": "17",
                     *         "productId": "coins_60",
                     *         "purchasedAt": "2026-01-02T03:04:05.678Z",
                     *         "quantity": 1,
                     *         "returned": 0,
                     *         "revokedAt": "2026-01-04T03:04:05.678Z",
                     *         "status": "credited",
                     *         "store": "apple",
                     *         "storeNumber": "2000000800000001",
                     *         "storeProductId": "com.example.app.coins60"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["ReportedPurchase"];
                };
            };
        };
    };
    listSessions: {
        parameters: {
            query?: {
                /** @description `nextCursor` of the previous response. */
                cursor?: string;
                /** @description Maximum number of sessions. */
                limit?: number;
                /** @description Only sessions whose question, title and note contain all of these words. A page may then have fewer sessions than `limit`, or none, and a next page. */
                search?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "castAt": "2026-01-02T03:04:05.678Z",
                     *           "createdAt": "2026-01-02T03:04:05.678Z",
                     *           "hexagram": {
                     *             "changing": [
                     *               6
                     *             ],
                     *             "nuclear": {
                     *               "chineseFullName": "水雷屯",
                     *               "chineseName": "屯",
                     *               "englishName": "Difficulty at the Beginning",
                     *               "lower": {
                     *                 "chineseName": "坎",
                     *                 "englishName": "The Abysmal",
                     *                 "pinyin": "kǎn",
                     *                 "sign": "☵"
                     *               },
                     *               "number": 3,
                     *               "pinyin": "zhūn",
                     *               "sign": "䷂",
                     *               "upper": {
                     *                 "chineseName": "坎",
                     *                 "englishName": "The Abysmal",
                     *                 "pinyin": "kǎn",
                     *                 "sign": "☵"
                     *               }
                     *             },
                     *             "primary": {
                     *               "chineseFullName": "水雷屯",
                     *               "chineseName": "屯",
                     *               "englishName": "Difficulty at the Beginning",
                     *               "lower": {
                     *                 "chineseName": "坎",
                     *                 "englishName": "The Abysmal",
                     *                 "pinyin": "kǎn",
                     *                 "sign": "☵"
                     *               },
                     *               "number": 3,
                     *               "pinyin": "zhūn",
                     *               "sign": "䷂",
                     *               "upper": {
                     *                 "chineseName": "坎",
                     *                 "englishName": "The Abysmal",
                     *                 "pinyin": "kǎn",
                     *                 "sign": "☵"
                     *               }
                     *             }
                     *           },
                     *           "id": "9b1f7c0e2a4d4e6f8a0b1c2d3e4f5061",
                     *           "interpretedAt": "2026-01-02T03:05:06.789Z",
                     *           "lines": [
                     *             7,
                     *             8,
                     *             8,
                     *             8,
                     *             7,
                     *             6
                     *           ],
                     *           "method": "numbers",
                     *           "note": "三月面试后再看。",
                     *           "pointsSpent": 10,
                     *           "question": "今年换工作合适吗？",
                     *           "questionType": "career",
                     *           "timeZone": "Asia/Shanghai",
                     *           "title": "换工作"
                     *         }
                     *       ],
                     *       "nextCursor": "AAAAAAAAACp9k2fQx1m0bY4sVwT7uLpH"
                     *     }
                     */
                    "application/json": components["schemas"]["SessionCursorPage"];
                };
            };
        };
    };
    castSession: {
        parameters: {
            query?: never;
            header?: {
                /** @description A text chosen by the client. A repeated request with the same key is executed once; repetitions get the first response with `Idempotency-Replayed: true`. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "method": "three_coins",
                 *       "question": "今年换工作合适吗？"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description Time of the casting. Default: now. Without an offset it is read in `timeZone`.
                     * @example 2026-01-02T11:04:05+08:00
                     */
                    castAt?: string;
                    /**
                     * @description In place of `castAt`, the branch of the month and the pillar of the day, such as `戌月甲寅日`. `castAt` is then noon of the last such day; year and hour are those of that time.
                     * @example 戌月甲寅日
                     */
                    castPillars?: string;
                    /** @description With `manual`, the six lines from the bottom: 6 old yin, 7 young yang, 8 young yin, 9 old yang. */
                    lines?: number[];
                    /**
                     * @description `three_coins` and `yarrow_stalks` cast on the server, each with its own odds; `manual` takes `lines`; `time` and `numbers` derive the lines from `castAt` or `numbers` (梅花易数).
                     * @example three_coins
                     */
                    method: components["schemas"]["CastingMethod"];
                    /** @description With `numbers`, one to three numbers: for the upper trigram, the lower trigram and the changing line. Without the third their sum chooses the line; without the second the double hour of `castAt` chooses the lower trigram. */
                    numbers?: number[];
                    /**
                     * @description The question. Moderated before the casting.
                     * @example 今年换工作合适吗？
                     */
                    question: string;
                    /**
                     * @description The topic of the question.
                     * @example career
                     */
                    questionType?: string;
                    /**
                     * @description Time zone of the user: an IANA name, or an offset such as `+08:00`. Default: the preference.
                     * @example Asia/Shanghai
                     */
                    timeZone?: string;
                };
            };
        };
        responses: {
            /** @description Created. */
            201: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "balance": 80,
                     *       "castAt": "2026-01-02T03:04:05.678Z",
                     *       "chart": {
                     *         "bodyBranch": "未",
                     *         "echoes": [],
                     *         "lines": [
                     *           {
                     *             "becomes": null,
                     *             "branch": "子",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "扶",
                     *             "element": "water",
                     *             "growthStage": "帝旺",
                     *             "hidden": null,
                     *             "kin": "兄弟",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 1,
                     *             "role": null,
                     *             "spirit": "朱雀",
                     *             "stem": "庚",
                     *             "strength": "旺",
                     *             "value": 7,
                     *             "void": false
                     *           },
                     *           {
                     *             "becomes": null,
                     *             "branch": "寅",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "生",
                     *             "element": "wood",
                     *             "growthStage": "沐浴",
                     *             "hidden": null,
                     *             "kin": "子孙",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 2,
                     *             "role": "世",
                     *             "spirit": "勾陈",
                     *             "stem": "庚",
                     *             "strength": "相",
                     *             "value": 8,
                     *             "void": false
                     *           },
                     *           {
                     *             "becomes": null,
                     *             "branch": "辰",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "耗",
                     *             "element": "earth",
                     *             "growthStage": "帝旺",
                     *             "hidden": {
                     *               "branch": "午",
                     *               "dayClash": true,
                     *               "dayCombination": false,
                     *               "dayEffect": "克",
                     *               "element": "fire",
                     *               "growthStage": "胎",
                     *               "kin": "妻财",
                     *               "monthBreak": true,
                     *               "monthCombination": false,
                     *               "stem": "戊",
                     *               "strength": "死",
                     *               "void": false
                     *             },
                     *             "kin": "官鬼",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 3,
                     *             "role": null,
                     *             "spirit": "螣蛇",
                     *             "stem": "庚",
                     *             "strength": "囚",
                     *             "value": 8,
                     *             "void": false
                     *           },
                     *           {
                     *             "becomes": null,
                     *             "branch": "申",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "泄",
                     *             "element": "metal",
                     *             "growthStage": "死",
                     *             "hidden": null,
                     *             "kin": "父母",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 4,
                     *             "role": null,
                     *             "spirit": "白虎",
                     *             "stem": "戊",
                     *             "strength": "休",
                     *             "value": 8,
                     *             "void": true
                     *           },
                     *           {
                     *             "becomes": null,
                     *             "branch": "戌",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "耗",
                     *             "element": "earth",
                     *             "growthStage": "帝旺",
                     *             "hidden": null,
                     *             "kin": "官鬼",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 5,
                     *             "role": "应",
                     *             "spirit": "玄武",
                     *             "stem": "戊",
                     *             "strength": "囚",
                     *             "value": 7,
                     *             "void": false
                     *           },
                     *           {
                     *             "becomes": {
                     *               "branch": "卯",
                     *               "clash": false,
                     *               "combination": false,
                     *               "dayClash": false,
                     *               "dayCombination": false,
                     *               "dayEffect": "生",
                     *               "element": "wood",
                     *               "growthStage": "沐浴",
                     *               "kin": "子孙",
                     *               "monthBreak": false,
                     *               "monthCombination": false,
                     *               "progress": null,
                     *               "relation": "化泄",
                     *               "stage": "死",
                     *               "stem": "辛",
                     *               "strength": "相",
                     *               "void": false
                     *             },
                     *             "branch": "子",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "扶",
                     *             "element": "water",
                     *             "growthStage": "帝旺",
                     *             "hidden": null,
                     *             "kin": "兄弟",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 6,
                     *             "role": null,
                     *             "spirit": "青龙",
                     *             "stem": "戊",
                     *             "strength": "旺",
                     *             "value": 6,
                     *             "void": false
                     *           }
                     *         ],
                     *         "marks": [
                     *           {
                     *             "element": null,
                     *             "kind": "独发",
                     *             "positions": [
                     *               6
                     *             ],
                     *             "waitsFor": null
                     *           }
                     *         ],
                     *         "moment": {
                     *           "clock": "civil",
                     *           "dayStart": "23:00",
                     *           "local": "2026-01-02T11:04:05+08:00",
                     *           "lunar": {
                     *             "day": 14,
                     *             "isLeapMonth": false,
                     *             "month": 11,
                     *             "year": 2025
                     *           },
                     *           "nearBoundary": [],
                     *           "pillars": {
                     *             "day": "丙子",
                     *             "hour": "甲午",
                     *             "month": "戊子",
                     *             "year": "乙巳"
                     *           },
                     *           "void": [
                     *             "申",
                     *             "酉"
                     *           ]
                     *         },
                     *         "palace": {
                     *           "element": "water",
                     *           "stage": "second",
                     *           "trigram": "坎"
                     *         },
                     *         "pattern": null,
                     *         "relatingLines": [
                     *           {
                     *             "branch": "子",
                     *             "element": "water",
                     *             "kin": "兄弟",
                     *             "stem": "庚"
                     *           },
                     *           {
                     *             "branch": "寅",
                     *             "element": "wood",
                     *             "kin": "子孙",
                     *             "stem": "庚"
                     *           },
                     *           {
                     *             "branch": "辰",
                     *             "element": "earth",
                     *             "kin": "官鬼",
                     *             "stem": "庚"
                     *           },
                     *           {
                     *             "branch": "未",
                     *             "element": "earth",
                     *             "kin": "官鬼",
                     *             "stem": "辛"
                     *           },
                     *           {
                     *             "branch": "巳",
                     *             "element": "fire",
                     *             "kin": "妻财",
                     *             "stem": "辛"
                     *           },
                     *           {
                     *             "branch": "卯",
                     *             "element": "wood",
                     *             "kin": "子孙",
                     *             "stem": "辛"
                     *           }
                     *         ],
                     *         "relatingPattern": null,
                     *         "stars": [
                     *           {
                     *             "branches": [
                     *               "亥",
                     *               "酉"
                     *             ],
                     *             "star": "天乙贵人"
                     *           },
                     *           {
                     *             "branches": [
                     *               "巳"
                     *             ],
                     *             "star": "禄神"
                     *           },
                     *           {
                     *             "branches": [
                     *               "午"
                     *             ],
                     *             "star": "羊刃"
                     *           },
                     *           {
                     *             "branches": [
                     *               "申"
                     *             ],
                     *             "star": "文昌"
                     *           },
                     *           {
                     *             "branches": [
                     *               "寅"
                     *             ],
                     *             "star": "驿马"
                     *           },
                     *           {
                     *             "branches": [
                     *               "酉"
                     *             ],
                     *             "star": "桃花"
                     *           },
                     *           {
                     *             "branches": [
                     *               "子"
                     *             ],
                     *             "star": "将星"
                     *           },
                     *           {
                     *             "branches": [
                     *               "辰"
                     *             ],
                     *             "star": "华盖"
                     *           },
                     *           {
                     *             "branches": [
                     *               "巳"
                     *             ],
                     *             "star": "劫煞"
                     *           },
                     *           {
                     *             "branches": [
                     *               "亥"
                     *             ],
                     *             "star": "天医"
                     *           },
                     *           {
                     *             "branches": [
                     *               "未"
                     *             ],
                     *             "star": "天喜"
                     *           }
                     *         ]
                     *       },
                     *       "classic": {
                     *         "judgement": {
                     *           "simplified": "元亨，利贞。勿用有攸往，利建侯。",
                     *           "traditional": "元亨，利貞。勿用有攸往，利建侯。"
                     *         },
                     *         "lines": [
                     *           {
                     *             "simplified": "磐桓，利居贞，利建侯。",
                     *             "traditional": "磐桓，利居貞，利建侯。"
                     *           },
                     *           {
                     *             "simplified": "屯如邅如，乘马班如。匪寇婚媾。女子贞不字，十年乃字。",
                     *             "traditional": "屯如邅如，乘馬班如。匪寇婚媾。女子貞不字，十年乃字。"
                     *           },
                     *           {
                     *             "simplified": "即鹿无虞，惟入于林中。君子几不如舍，往吝。",
                     *             "traditional": "即鹿无虞，惟入于林中。君子幾不如舍，往吝。"
                     *           },
                     *           {
                     *             "simplified": "乘马班如，求婚媾。往吉，无不利。",
                     *             "traditional": "乘馬班如，求婚媾。往吉，无不利。"
                     *           },
                     *           {
                     *             "simplified": "屯其膏。小贞吉，大贞凶。",
                     *             "traditional": "屯其膏。小貞吉，大貞凶。"
                     *           },
                     *           {
                     *             "simplified": "乘马班如，泣血涟如。",
                     *             "traditional": "乘馬班如，泣血漣如。"
                     *           }
                     *         ],
                     *         "reading": {
                     *           "rule": "one_changing",
                     *           "texts": [
                     *             {
                     *               "hexagram": 3,
                     *               "isMain": true,
                     *               "label": "上六",
                     *               "part": "line",
                     *               "plain": "骑马徘徊，哭得血泪涟涟，困在尽头不是长久之计，该另寻出路。",
                     *               "position": 6,
                     *               "text": {
                     *                 "simplified": "乘马班如，泣血涟如。",
                     *                 "traditional": "乘馬班如，泣血漣如。"
                     *               }
                     *             }
                     *           ]
                     *         }
                     *       },
                     *       "createdAt": "2026-01-02T03:04:05.678Z",
                     *       "derivation": {
                     *         "bodyAndUse": {
                     *           "body": {
                     *             "element": "wood",
                     *             "half": "lower",
                     *             "trigram": "震"
                     *           },
                     *           "changed": {
                     *             "element": "wood",
                     *             "half": "upper",
                     *             "relation": "比和",
                     *             "trigram": "巽"
                     *           },
                     *           "nuclear": [
                     *             {
                     *               "element": "earth",
                     *               "half": "lower",
                     *               "relation": "体克",
                     *               "trigram": "坤"
                     *             },
                     *             {
                     *               "element": "earth",
                     *               "half": "upper",
                     *               "relation": "体克",
                     *               "trigram": "艮"
                     *             }
                     *           ],
                     *           "use": {
                     *             "element": "water",
                     *             "half": "upper",
                     *             "relation": "生体",
                     *             "trigram": "坎"
                     *           }
                     *         },
                     *         "changingLine": {
                     *           "position": 6,
                     *           "sum": 6
                     *         },
                     *         "lower": {
                     *           "remainder": 4,
                     *           "sum": 4,
                     *           "trigram": "震"
                     *         },
                     *         "source": {
                     *           "kind": "three_numbers",
                     *           "line": 6,
                     *           "lower": 4,
                     *           "upper": 6
                     *         },
                     *         "upper": {
                     *           "remainder": 6,
                     *           "sum": 6,
                     *           "trigram": "坎"
                     *         }
                     *       },
                     *       "hexagram": {
                     *         "changing": [
                     *           6
                     *         ],
                     *         "nuclear": {
                     *           "chineseFullName": "水雷屯",
                     *           "chineseName": "屯",
                     *           "englishName": "Difficulty at the Beginning",
                     *           "lower": {
                     *             "chineseName": "坎",
                     *             "englishName": "The Abysmal",
                     *             "pinyin": "kǎn",
                     *             "sign": "☵"
                     *           },
                     *           "number": 3,
                     *           "pinyin": "zhūn",
                     *           "sign": "䷂",
                     *           "upper": {
                     *             "chineseName": "坎",
                     *             "englishName": "The Abysmal",
                     *             "pinyin": "kǎn",
                     *             "sign": "☵"
                     *           }
                     *         },
                     *         "primary": {
                     *           "chineseFullName": "水雷屯",
                     *           "chineseName": "屯",
                     *           "englishName": "Difficulty at the Beginning",
                     *           "lower": {
                     *             "chineseName": "坎",
                     *             "englishName": "The Abysmal",
                     *             "pinyin": "kǎn",
                     *             "sign": "☵"
                     *           },
                     *           "number": 3,
                     *           "pinyin": "zhūn",
                     *           "sign": "䷂",
                     *           "upper": {
                     *             "chineseName": "坎",
                     *             "englishName": "The Abysmal",
                     *             "pinyin": "kǎn",
                     *             "sign": "☵"
                     *           }
                     *         },
                     *         "relating": {
                     *           "chineseFullName": "水雷屯",
                     *           "chineseName": "屯",
                     *           "englishName": "Difficulty at the Beginning",
                     *           "lower": {
                     *             "chineseName": "坎",
                     *             "englishName": "The Abysmal",
                     *             "pinyin": "kǎn",
                     *             "sign": "☵"
                     *           },
                     *           "number": 3,
                     *           "pinyin": "zhūn",
                     *           "sign": "䷂",
                     *           "upper": {
                     *             "chineseName": "坎",
                     *             "englishName": "The Abysmal",
                     *             "pinyin": "kǎn",
                     *             "sign": "☵"
                     *           }
                     *         }
                     *       },
                     *       "id": "9b1f7c0e2a4d4e6f8a0b1c2d3e4f5061",
                     *       "interpretation": {
                     *         "chart": {
                     *           "bodyBranch": "未",
                     *           "echoes": [],
                     *           "lines": [
                     *             {
                     *               "becomes": null,
                     *               "branch": "子",
                     *               "clashEffect": null,
                     *               "dayClash": false,
                     *               "dayCombination": false,
                     *               "dayEffect": "扶",
                     *               "element": "water",
                     *               "growthStage": "帝旺",
                     *               "hidden": null,
                     *               "kin": "兄弟",
                     *               "monthBreak": false,
                     *               "monthCombination": false,
                     *               "position": 1,
                     *               "role": null,
                     *               "spirit": "朱雀",
                     *               "stem": "庚",
                     *               "strength": "旺",
                     *               "value": 7,
                     *               "void": false
                     *             },
                     *             {
                     *               "becomes": null,
                     *               "branch": "寅",
                     *               "clashEffect": null,
                     *               "dayClash": false,
                     *               "dayCombination": false,
                     *               "dayEffect": "生",
                     *               "element": "wood",
                     *               "growthStage": "沐浴",
                     *               "hidden": null,
                     *               "kin": "子孙",
                     *               "monthBreak": false,
                     *               "monthCombination": false,
                     *               "position": 2,
                     *               "role": "世",
                     *               "spirit": "勾陈",
                     *               "stem": "庚",
                     *               "strength": "相",
                     *               "value": 8,
                     *               "void": false
                     *             },
                     *             {
                     *               "becomes": null,
                     *               "branch": "辰",
                     *               "clashEffect": null,
                     *               "dayClash": false,
                     *               "dayCombination": false,
                     *               "dayEffect": "耗",
                     *               "element": "earth",
                     *               "growthStage": "帝旺",
                     *               "hidden": {
                     *                 "branch": "午",
                     *                 "dayClash": true,
                     *                 "dayCombination": false,
                     *                 "dayEffect": "克",
                     *                 "element": "fire",
                     *                 "growthStage": "胎",
                     *                 "kin": "妻财",
                     *                 "monthBreak": true,
                     *                 "monthCombination": false,
                     *                 "stem": "戊",
                     *                 "strength": "死",
                     *                 "void": false
                     *               },
                     *               "kin": "官鬼",
                     *               "monthBreak": false,
                     *               "monthCombination": false,
                     *               "position": 3,
                     *               "role": null,
                     *               "spirit": "螣蛇",
                     *               "stem": "庚",
                     *               "strength": "囚",
                     *               "value": 8,
                     *               "void": false
                     *             },
                     *             {
                     *               "becomes": null,
                     *               "branch": "申",
                     *               "clashEffect": null,
                     *               "dayClash": false,
                     *               "dayCombination": false,
                     *               "dayEffect": "泄",
                     *               "element": "metal",
                     *               "growthStage": "死",
                     *               "hidden": null,
                     *               "kin": "父母",
                     *               "monthBreak": false,
                     *               "monthCombination": false,
                     *               "position": 4,
                     *               "role": null,
                     *               "spirit": "白虎",
                     *               "stem": "戊",
                     *               "strength": "休",
                     *               "value": 8,
                     *               "void": true
                     *             },
                     *             {
                     *               "becomes": null,
                     *               "branch": "戌",
                     *               "clashEffect": null,
                     *               "dayClash": false,
                     *               "dayCombination": false,
                     *               "dayEffect": "耗",
                     *               "element": "earth",
                     *               "growthStage": "帝旺",
                     *               "hidden": null,
                     *               "kin": "官鬼",
                     *               "monthBreak": false,
                     *               "monthCombination": false,
                     *               "position": 5,
                     *               "role": "应",
                     *               "spirit": "玄武",
                     *               "stem": "戊",
                     *               "strength": "囚",
                     *               "value": 7,
                     *               "void": false
                     *             },
                     *             {
                     *               "becomes": {
                     *                 "branch": "卯",
                     *                 "clash": false,
                     *                 "combination": false,
                     *                 "dayClash": false,
                     *                 "dayCombination": false,
                     *                 "dayEffect": "生",
                     *                 "element": "wood",
                     *                 "growthStage": "沐浴",
                     *                 "kin": "子孙",
                     *                 "monthBreak": false,
                     *                 "monthCombination": false,
                     *                 "progress": null,
                     *                 "relation": "化泄",
                     *                 "stage": "死",
                     *                 "stem": "辛",
                     *                 "strength": "相",
                     *                 "void": false
                     *               },
                     *               "branch": "子",
                     *               "clashEffect": null,
                     *               "dayClash": false,
                     *               "dayCombination": false,
                     *               "dayEffect": "扶",
                     *               "element": "water",
                     *               "growthStage": "帝旺",
                     *               "hidden": null,
                     *               "kin": "兄弟",
                     *               "monthBreak": false,
                     *               "monthCombination": false,
                     *               "position": 6,
                     *               "role": null,
                     *               "spirit": "青龙",
                     *               "stem": "戊",
                     *               "strength": "旺",
                     *               "value": 6,
                     *               "void": false
                     *             }
                     *           ],
                     *           "marks": [
                     *             {
                     *               "element": null,
                     *               "kind": "独发",
                     *               "positions": [
                     *                 6
                     *               ],
                     *               "waitsFor": null
                     *             }
                     *           ],
                     *           "moment": {
                     *             "clock": "civil",
                     *             "dayStart": "23:00",
                     *             "local": "2026-01-02T11:04:05+08:00",
                     *             "lunar": {
                     *               "day": 14,
                     *               "isLeapMonth": false,
                     *               "month": 11,
                     *               "year": 2025
                     *             },
                     *             "nearBoundary": [],
                     *             "pillars": {
                     *               "day": "丙子",
                     *               "hour": "甲午",
                     *               "month": "戊子",
                     *               "year": "乙巳"
                     *             },
                     *             "void": [
                     *               "申",
                     *               "酉"
                     *             ]
                     *           },
                     *           "palace": {
                     *             "element": "water",
                     *             "stage": "second",
                     *             "trigram": "坎"
                     *           },
                     *           "pattern": null,
                     *           "relatingLines": [
                     *             {
                     *               "branch": "子",
                     *               "element": "water",
                     *               "kin": "兄弟",
                     *               "stem": "庚"
                     *             },
                     *             {
                     *               "branch": "寅",
                     *               "element": "wood",
                     *               "kin": "子孙",
                     *               "stem": "庚"
                     *             },
                     *             {
                     *               "branch": "辰",
                     *               "element": "earth",
                     *               "kin": "官鬼",
                     *               "stem": "庚"
                     *             },
                     *             {
                     *               "branch": "未",
                     *               "element": "earth",
                     *               "kin": "官鬼",
                     *               "stem": "辛"
                     *             },
                     *             {
                     *               "branch": "巳",
                     *               "element": "fire",
                     *               "kin": "妻财",
                     *               "stem": "辛"
                     *             },
                     *             {
                     *               "branch": "卯",
                     *               "element": "wood",
                     *               "kin": "子孙",
                     *               "stem": "辛"
                     *             }
                     *           ],
                     *           "relatingPattern": null,
                     *           "stars": [
                     *             {
                     *               "branches": [
                     *                 "亥",
                     *                 "酉"
                     *               ],
                     *               "star": "天乙贵人"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "巳"
                     *               ],
                     *               "star": "禄神"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "午"
                     *               ],
                     *               "star": "羊刃"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "申"
                     *               ],
                     *               "star": "文昌"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "寅"
                     *               ],
                     *               "star": "驿马"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "酉"
                     *               ],
                     *               "star": "桃花"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "子"
                     *               ],
                     *               "star": "将星"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "辰"
                     *               ],
                     *               "star": "华盖"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "巳"
                     *               ],
                     *               "star": "劫煞"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "亥"
                     *               ],
                     *               "star": "天医"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "未"
                     *               ],
                     *               "star": "天喜"
                     *             }
                     *           ]
                     *         },
                     *         "classic": {
                     *           "judgement": {
                     *             "simplified": "元亨，利贞。勿用有攸往，利建侯。",
                     *             "traditional": "元亨，利貞。勿用有攸往，利建侯。"
                     *           },
                     *           "lines": [
                     *             {
                     *               "simplified": "磐桓，利居贞，利建侯。",
                     *               "traditional": "磐桓，利居貞，利建侯。"
                     *             },
                     *             {
                     *               "simplified": "屯如邅如，乘马班如。匪寇婚媾。女子贞不字，十年乃字。",
                     *               "traditional": "屯如邅如，乘馬班如。匪寇婚媾。女子貞不字，十年乃字。"
                     *             },
                     *             {
                     *               "simplified": "即鹿无虞，惟入于林中。君子几不如舍，往吝。",
                     *               "traditional": "即鹿无虞，惟入于林中。君子幾不如舍，往吝。"
                     *             },
                     *             {
                     *               "simplified": "乘马班如，求婚媾。往吉，无不利。",
                     *               "traditional": "乘馬班如，求婚媾。往吉，无不利。"
                     *             },
                     *             {
                     *               "simplified": "屯其膏。小贞吉，大贞凶。",
                     *               "traditional": "屯其膏。小貞吉，大貞凶。"
                     *             },
                     *             {
                     *               "simplified": "乘马班如，泣血涟如。",
                     *               "traditional": "乘馬班如，泣血漣如。"
                     *             }
                     *           ],
                     *           "reading": {
                     *             "rule": "one_changing",
                     *             "texts": [
                     *               {
                     *                 "hexagram": 3,
                     *                 "isMain": true,
                     *                 "label": "上六",
                     *                 "part": "line",
                     *                 "plain": "骑马徘徊，哭得血泪涟涟，困在尽头不是长久之计，该另寻出路。",
                     *                 "position": 6,
                     *                 "text": {
                     *                   "simplified": "乘马班如，泣血涟如。",
                     *                   "traditional": "乘馬班如，泣血漣如。"
                     *                 }
                     *               }
                     *             ]
                     *           }
                     *         },
                     *         "createdAt": "2026-01-02T03:04:05.678Z",
                     *         "durationMs": 2,
                     *         "finishReason": "stop",
                     *         "model": "builtin-1",
                     *         "promptVersion": "2",
                     *         "provider": "builtin",
                     *         "rating": {
                     *           "helpful": true,
                     *           "note": "讲得很清楚。",
                     *           "ratedAt": "2026-01-02T03:05:06.789Z"
                     *         },
                     *         "result": "水雷屯：万事起头难……",
                     *         "status": "succeeded",
                     *         "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
                     *         "usage": {
                     *           "completionTokens": 420,
                     *           "promptTokens": 180
                     *         }
                     *       },
                     *       "interpretations": [
                     *         {
                     *           "createdAt": "2026-01-02T03:04:05.678Z",
                     *           "durationMs": 2,
                     *           "finishReason": "stop",
                     *           "model": "builtin-1",
                     *           "promptVersion": "2",
                     *           "provider": "builtin",
                     *           "rating": {
                     *             "helpful": true,
                     *             "note": "讲得很清楚。",
                     *             "ratedAt": "2026-01-02T03:05:06.789Z"
                     *           },
                     *           "result": "水雷屯：万事起头难……",
                     *           "status": "succeeded",
                     *           "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
                     *           "usage": {
                     *             "completionTokens": 420,
                     *             "promptTokens": 180
                     *           }
                     *         }
                     *       ],
                     *       "interpretedAt": "2026-01-02T03:05:06.789Z",
                     *       "lines": [
                     *         7,
                     *         8,
                     *         8,
                     *         8,
                     *         7,
                     *         6
                     *       ],
                     *       "method": "numbers",
                     *       "nextInterpretationPoints": 0,
                     *       "note": "三月面试后再看。",
                     *       "pointsSpent": 10,
                     *       "question": "今年换工作合适吗？",
                     *       "questionType": "career",
                     *       "remainingInterpretations": 2,
                     *       "timeZone": "Asia/Shanghai",
                     *       "title": "换工作"
                     *     }
                     */
                    "application/json": components["schemas"]["Session"];
                };
            };
        };
    };
    getSession: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The session's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "balance": 80,
                     *       "castAt": "2026-01-02T03:04:05.678Z",
                     *       "chart": {
                     *         "bodyBranch": "未",
                     *         "echoes": [],
                     *         "lines": [
                     *           {
                     *             "becomes": null,
                     *             "branch": "子",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "扶",
                     *             "element": "water",
                     *             "growthStage": "帝旺",
                     *             "hidden": null,
                     *             "kin": "兄弟",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 1,
                     *             "role": null,
                     *             "spirit": "朱雀",
                     *             "stem": "庚",
                     *             "strength": "旺",
                     *             "value": 7,
                     *             "void": false
                     *           },
                     *           {
                     *             "becomes": null,
                     *             "branch": "寅",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "生",
                     *             "element": "wood",
                     *             "growthStage": "沐浴",
                     *             "hidden": null,
                     *             "kin": "子孙",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 2,
                     *             "role": "世",
                     *             "spirit": "勾陈",
                     *             "stem": "庚",
                     *             "strength": "相",
                     *             "value": 8,
                     *             "void": false
                     *           },
                     *           {
                     *             "becomes": null,
                     *             "branch": "辰",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "耗",
                     *             "element": "earth",
                     *             "growthStage": "帝旺",
                     *             "hidden": {
                     *               "branch": "午",
                     *               "dayClash": true,
                     *               "dayCombination": false,
                     *               "dayEffect": "克",
                     *               "element": "fire",
                     *               "growthStage": "胎",
                     *               "kin": "妻财",
                     *               "monthBreak": true,
                     *               "monthCombination": false,
                     *               "stem": "戊",
                     *               "strength": "死",
                     *               "void": false
                     *             },
                     *             "kin": "官鬼",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 3,
                     *             "role": null,
                     *             "spirit": "螣蛇",
                     *             "stem": "庚",
                     *             "strength": "囚",
                     *             "value": 8,
                     *             "void": false
                     *           },
                     *           {
                     *             "becomes": null,
                     *             "branch": "申",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "泄",
                     *             "element": "metal",
                     *             "growthStage": "死",
                     *             "hidden": null,
                     *             "kin": "父母",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 4,
                     *             "role": null,
                     *             "spirit": "白虎",
                     *             "stem": "戊",
                     *             "strength": "休",
                     *             "value": 8,
                     *             "void": true
                     *           },
                     *           {
                     *             "becomes": null,
                     *             "branch": "戌",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "耗",
                     *             "element": "earth",
                     *             "growthStage": "帝旺",
                     *             "hidden": null,
                     *             "kin": "官鬼",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 5,
                     *             "role": "应",
                     *             "spirit": "玄武",
                     *             "stem": "戊",
                     *             "strength": "囚",
                     *             "value": 7,
                     *             "void": false
                     *           },
                     *           {
                     *             "becomes": {
                     *               "branch": "卯",
                     *               "clash": false,
                     *               "combination": false,
                     *               "dayClash": false,
                     *               "dayCombination": false,
                     *               "dayEffect": "生",
                     *               "element": "wood",
                     *               "growthStage": "沐浴",
                     *               "kin": "子孙",
                     *               "monthBreak": false,
                     *               "monthCombination": false,
                     *               "progress": null,
                     *               "relation": "化泄",
                     *               "stage": "死",
                     *               "stem": "辛",
                     *               "strength": "相",
                     *               "void": false
                     *             },
                     *             "branch": "子",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "扶",
                     *             "element": "water",
                     *             "growthStage": "帝旺",
                     *             "hidden": null,
                     *             "kin": "兄弟",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 6,
                     *             "role": null,
                     *             "spirit": "青龙",
                     *             "stem": "戊",
                     *             "strength": "旺",
                     *             "value": 6,
                     *             "void": false
                     *           }
                     *         ],
                     *         "marks": [
                     *           {
                     *             "element": null,
                     *             "kind": "独发",
                     *             "positions": [
                     *               6
                     *             ],
                     *             "waitsFor": null
                     *           }
                     *         ],
                     *         "moment": {
                     *           "clock": "civil",
                     *           "dayStart": "23:00",
                     *           "local": "2026-01-02T11:04:05+08:00",
                     *           "lunar": {
                     *             "day": 14,
                     *             "isLeapMonth": false,
                     *             "month": 11,
                     *             "year": 2025
                     *           },
                     *           "nearBoundary": [],
                     *           "pillars": {
                     *             "day": "丙子",
                     *             "hour": "甲午",
                     *             "month": "戊子",
                     *             "year": "乙巳"
                     *           },
                     *           "void": [
                     *             "申",
                     *             "酉"
                     *           ]
                     *         },
                     *         "palace": {
                     *           "element": "water",
                     *           "stage": "second",
                     *           "trigram": "坎"
                     *         },
                     *         "pattern": null,
                     *         "relatingLines": [
                     *           {
                     *             "branch": "子",
                     *             "element": "water",
                     *             "kin": "兄弟",
                     *             "stem": "庚"
                     *           },
                     *           {
                     *             "branch": "寅",
                     *             "element": "wood",
                     *             "kin": "子孙",
                     *             "stem": "庚"
                     *           },
                     *           {
                     *             "branch": "辰",
                     *             "element": "earth",
                     *             "kin": "官鬼",
                     *             "stem": "庚"
                     *           },
                     *           {
                     *             "branch": "未",
                     *             "element": "earth",
                     *             "kin": "官鬼",
                     *             "stem": "辛"
                     *           },
                     *           {
                     *             "branch": "巳",
                     *             "element": "fire",
                     *             "kin": "妻财",
                     *             "stem": "辛"
                     *           },
                     *           {
                     *             "branch": "卯",
                     *             "element": "wood",
                     *             "kin": "子孙",
                     *             "stem": "辛"
                     *           }
                     *         ],
                     *         "relatingPattern": null,
                     *         "stars": [
                     *           {
                     *             "branches": [
                     *               "亥",
                     *               "酉"
                     *             ],
                     *             "star": "天乙贵人"
                     *           },
                     *           {
                     *             "branches": [
                     *               "巳"
                     *             ],
                     *             "star": "禄神"
                     *           },
                     *           {
                     *             "branches": [
                     *               "午"
                     *             ],
                     *             "star": "羊刃"
                     *           },
                     *           {
                     *             "branches": [
                     *               "申"
                     *             ],
                     *             "star": "文昌"
                     *           },
                     *           {
                     *             "branches": [
                     *               "寅"
                     *             ],
                     *             "star": "驿马"
                     *           },
                     *           {
                     *             "branches": [
                     *               "酉"
                     *             ],
                     *             "star": "桃花"
                     *           },
                     *           {
                     *             "branches": [
                     *               "子"
                     *             ],
                     *             "star": "将星"
                     *           },
                     *           {
                     *             "branches": [
                     *               "辰"
                     *             ],
                     *             "star": "华盖"
                     *           },
                     *           {
                     *             "branches": [
                     *               "巳"
                     *             ],
                     *             "star": "劫煞"
                     *           },
                     *           {
                     *             "branches": [
                     *               "亥"
                     *             ],
                     *             "star": "天医"
                     *           },
                     *           {
                     *             "branches": [
                     *               "未"
                     *             ],
                     *             "star": "天喜"
                     *           }
                     *         ]
                     *       },
                     *       "classic": {
                     *         "judgement": {
                     *           "simplified": "元亨，利贞。勿用有攸往，利建侯。",
                     *           "traditional": "元亨，利貞。勿用有攸往，利建侯。"
                     *         },
                     *         "lines": [
                     *           {
                     *             "simplified": "磐桓，利居贞，利建侯。",
                     *             "traditional": "磐桓，利居貞，利建侯。"
                     *           },
                     *           {
                     *             "simplified": "屯如邅如，乘马班如。匪寇婚媾。女子贞不字，十年乃字。",
                     *             "traditional": "屯如邅如，乘馬班如。匪寇婚媾。女子貞不字，十年乃字。"
                     *           },
                     *           {
                     *             "simplified": "即鹿无虞，惟入于林中。君子几不如舍，往吝。",
                     *             "traditional": "即鹿无虞，惟入于林中。君子幾不如舍，往吝。"
                     *           },
                     *           {
                     *             "simplified": "乘马班如，求婚媾。往吉，无不利。",
                     *             "traditional": "乘馬班如，求婚媾。往吉，无不利。"
                     *           },
                     *           {
                     *             "simplified": "屯其膏。小贞吉，大贞凶。",
                     *             "traditional": "屯其膏。小貞吉，大貞凶。"
                     *           },
                     *           {
                     *             "simplified": "乘马班如，泣血涟如。",
                     *             "traditional": "乘馬班如，泣血漣如。"
                     *           }
                     *         ],
                     *         "reading": {
                     *           "rule": "one_changing",
                     *           "texts": [
                     *             {
                     *               "hexagram": 3,
                     *               "isMain": true,
                     *               "label": "上六",
                     *               "part": "line",
                     *               "plain": "骑马徘徊，哭得血泪涟涟，困在尽头不是长久之计，该另寻出路。",
                     *               "position": 6,
                     *               "text": {
                     *                 "simplified": "乘马班如，泣血涟如。",
                     *                 "traditional": "乘馬班如，泣血漣如。"
                     *               }
                     *             }
                     *           ]
                     *         }
                     *       },
                     *       "createdAt": "2026-01-02T03:04:05.678Z",
                     *       "derivation": {
                     *         "bodyAndUse": {
                     *           "body": {
                     *             "element": "wood",
                     *             "half": "lower",
                     *             "trigram": "震"
                     *           },
                     *           "changed": {
                     *             "element": "wood",
                     *             "half": "upper",
                     *             "relation": "比和",
                     *             "trigram": "巽"
                     *           },
                     *           "nuclear": [
                     *             {
                     *               "element": "earth",
                     *               "half": "lower",
                     *               "relation": "体克",
                     *               "trigram": "坤"
                     *             },
                     *             {
                     *               "element": "earth",
                     *               "half": "upper",
                     *               "relation": "体克",
                     *               "trigram": "艮"
                     *             }
                     *           ],
                     *           "use": {
                     *             "element": "water",
                     *             "half": "upper",
                     *             "relation": "生体",
                     *             "trigram": "坎"
                     *           }
                     *         },
                     *         "changingLine": {
                     *           "position": 6,
                     *           "sum": 6
                     *         },
                     *         "lower": {
                     *           "remainder": 4,
                     *           "sum": 4,
                     *           "trigram": "震"
                     *         },
                     *         "source": {
                     *           "kind": "three_numbers",
                     *           "line": 6,
                     *           "lower": 4,
                     *           "upper": 6
                     *         },
                     *         "upper": {
                     *           "remainder": 6,
                     *           "sum": 6,
                     *           "trigram": "坎"
                     *         }
                     *       },
                     *       "hexagram": {
                     *         "changing": [
                     *           6
                     *         ],
                     *         "nuclear": {
                     *           "chineseFullName": "水雷屯",
                     *           "chineseName": "屯",
                     *           "englishName": "Difficulty at the Beginning",
                     *           "lower": {
                     *             "chineseName": "坎",
                     *             "englishName": "The Abysmal",
                     *             "pinyin": "kǎn",
                     *             "sign": "☵"
                     *           },
                     *           "number": 3,
                     *           "pinyin": "zhūn",
                     *           "sign": "䷂",
                     *           "upper": {
                     *             "chineseName": "坎",
                     *             "englishName": "The Abysmal",
                     *             "pinyin": "kǎn",
                     *             "sign": "☵"
                     *           }
                     *         },
                     *         "primary": {
                     *           "chineseFullName": "水雷屯",
                     *           "chineseName": "屯",
                     *           "englishName": "Difficulty at the Beginning",
                     *           "lower": {
                     *             "chineseName": "坎",
                     *             "englishName": "The Abysmal",
                     *             "pinyin": "kǎn",
                     *             "sign": "☵"
                     *           },
                     *           "number": 3,
                     *           "pinyin": "zhūn",
                     *           "sign": "䷂",
                     *           "upper": {
                     *             "chineseName": "坎",
                     *             "englishName": "The Abysmal",
                     *             "pinyin": "kǎn",
                     *             "sign": "☵"
                     *           }
                     *         },
                     *         "relating": {
                     *           "chineseFullName": "水雷屯",
                     *           "chineseName": "屯",
                     *           "englishName": "Difficulty at the Beginning",
                     *           "lower": {
                     *             "chineseName": "坎",
                     *             "englishName": "The Abysmal",
                     *             "pinyin": "kǎn",
                     *             "sign": "☵"
                     *           },
                     *           "number": 3,
                     *           "pinyin": "zhūn",
                     *           "sign": "䷂",
                     *           "upper": {
                     *             "chineseName": "坎",
                     *             "englishName": "The Abysmal",
                     *             "pinyin": "kǎn",
                     *             "sign": "☵"
                     *           }
                     *         }
                     *       },
                     *       "id": "9b1f7c0e2a4d4e6f8a0b1c2d3e4f5061",
                     *       "interpretation": {
                     *         "chart": {
                     *           "bodyBranch": "未",
                     *           "echoes": [],
                     *           "lines": [
                     *             {
                     *               "becomes": null,
                     *               "branch": "子",
                     *               "clashEffect": null,
                     *               "dayClash": false,
                     *               "dayCombination": false,
                     *               "dayEffect": "扶",
                     *               "element": "water",
                     *               "growthStage": "帝旺",
                     *               "hidden": null,
                     *               "kin": "兄弟",
                     *               "monthBreak": false,
                     *               "monthCombination": false,
                     *               "position": 1,
                     *               "role": null,
                     *               "spirit": "朱雀",
                     *               "stem": "庚",
                     *               "strength": "旺",
                     *               "value": 7,
                     *               "void": false
                     *             },
                     *             {
                     *               "becomes": null,
                     *               "branch": "寅",
                     *               "clashEffect": null,
                     *               "dayClash": false,
                     *               "dayCombination": false,
                     *               "dayEffect": "生",
                     *               "element": "wood",
                     *               "growthStage": "沐浴",
                     *               "hidden": null,
                     *               "kin": "子孙",
                     *               "monthBreak": false,
                     *               "monthCombination": false,
                     *               "position": 2,
                     *               "role": "世",
                     *               "spirit": "勾陈",
                     *               "stem": "庚",
                     *               "strength": "相",
                     *               "value": 8,
                     *               "void": false
                     *             },
                     *             {
                     *               "becomes": null,
                     *               "branch": "辰",
                     *               "clashEffect": null,
                     *               "dayClash": false,
                     *               "dayCombination": false,
                     *               "dayEffect": "耗",
                     *               "element": "earth",
                     *               "growthStage": "帝旺",
                     *               "hidden": {
                     *                 "branch": "午",
                     *                 "dayClash": true,
                     *                 "dayCombination": false,
                     *                 "dayEffect": "克",
                     *                 "element": "fire",
                     *                 "growthStage": "胎",
                     *                 "kin": "妻财",
                     *                 "monthBreak": true,
                     *                 "monthCombination": false,
                     *                 "stem": "戊",
                     *                 "strength": "死",
                     *                 "void": false
                     *               },
                     *               "kin": "官鬼",
                     *               "monthBreak": false,
                     *               "monthCombination": false,
                     *               "position": 3,
                     *               "role": null,
                     *               "spirit": "螣蛇",
                     *               "stem": "庚",
                     *               "strength": "囚",
                     *               "value": 8,
                     *               "void": false
                     *             },
                     *             {
                     *               "becomes": null,
                     *               "branch": "申",
                     *               "clashEffect": null,
                     *               "dayClash": false,
                     *               "dayCombination": false,
                     *               "dayEffect": "泄",
                     *               "element": "metal",
                     *               "growthStage": "死",
                     *               "hidden": null,
                     *               "kin": "父母",
                     *               "monthBreak": false,
                     *               "monthCombination": false,
                     *               "position": 4,
                     *               "role": null,
                     *               "spirit": "白虎",
                     *               "stem": "戊",
                     *               "strength": "休",
                     *               "value": 8,
                     *               "void": true
                     *             },
                     *             {
                     *               "becomes": null,
                     *               "branch": "戌",
                     *               "clashEffect": null,
                     *               "dayClash": false,
                     *               "dayCombination": false,
                     *               "dayEffect": "耗",
                     *               "element": "earth",
                     *               "growthStage": "帝旺",
                     *               "hidden": null,
                     *               "kin": "官鬼",
                     *               "monthBreak": false,
                     *               "monthCombination": false,
                     *               "position": 5,
                     *               "role": "应",
                     *               "spirit": "玄武",
                     *               "stem": "戊",
                     *               "strength": "囚",
                     *               "value": 7,
                     *               "void": false
                     *             },
                     *             {
                     *               "becomes": {
                     *                 "branch": "卯",
                     *                 "clash": false,
                     *                 "combination": false,
                     *                 "dayClash": false,
                     *                 "dayCombination": false,
                     *                 "dayEffect": "生",
                     *                 "element": "wood",
                     *                 "growthStage": "沐浴",
                     *                 "kin": "子孙",
                     *                 "monthBreak": false,
                     *                 "monthCombination": false,
                     *                 "progress": null,
                     *                 "relation": "化泄",
                     *                 "stage": "死",
                     *                 "stem": "辛",
                     *                 "strength": "相",
                     *                 "void": false
                     *               },
                     *               "branch": "子",
                     *               "clashEffect": null,
                     *               "dayClash": false,
                     *               "dayCombination": false,
                     *               "dayEffect": "扶",
                     *               "element": "water",
                     *               "growthStage": "帝旺",
                     *               "hidden": null,
                     *               "kin": "兄弟",
                     *               "monthBreak": false,
                     *               "monthCombination": false,
                     *               "position": 6,
                     *               "role": null,
                     *               "spirit": "青龙",
                     *               "stem": "戊",
                     *               "strength": "旺",
                     *               "value": 6,
                     *               "void": false
                     *             }
                     *           ],
                     *           "marks": [
                     *             {
                     *               "element": null,
                     *               "kind": "独发",
                     *               "positions": [
                     *                 6
                     *               ],
                     *               "waitsFor": null
                     *             }
                     *           ],
                     *           "moment": {
                     *             "clock": "civil",
                     *             "dayStart": "23:00",
                     *             "local": "2026-01-02T11:04:05+08:00",
                     *             "lunar": {
                     *               "day": 14,
                     *               "isLeapMonth": false,
                     *               "month": 11,
                     *               "year": 2025
                     *             },
                     *             "nearBoundary": [],
                     *             "pillars": {
                     *               "day": "丙子",
                     *               "hour": "甲午",
                     *               "month": "戊子",
                     *               "year": "乙巳"
                     *             },
                     *             "void": [
                     *               "申",
                     *               "酉"
                     *             ]
                     *           },
                     *           "palace": {
                     *             "element": "water",
                     *             "stage": "second",
                     *             "trigram": "坎"
                     *           },
                     *           "pattern": null,
                     *           "relatingLines": [
                     *             {
                     *               "branch": "子",
                     *               "element": "water",
                     *               "kin": "兄弟",
                     *               "stem": "庚"
                     *             },
                     *             {
                     *               "branch": "寅",
                     *               "element": "wood",
                     *               "kin": "子孙",
                     *               "stem": "庚"
                     *             },
                     *             {
                     *               "branch": "辰",
                     *               "element": "earth",
                     *               "kin": "官鬼",
                     *               "stem": "庚"
                     *             },
                     *             {
                     *               "branch": "未",
                     *               "element": "earth",
                     *               "kin": "官鬼",
                     *               "stem": "辛"
                     *             },
                     *             {
                     *               "branch": "巳",
                     *               "element": "fire",
                     *               "kin": "妻财",
                     *               "stem": "辛"
                     *             },
                     *             {
                     *               "branch": "卯",
                     *               "element": "wood",
                     *               "kin": "子孙",
                     *               "stem": "辛"
                     *             }
                     *           ],
                     *           "relatingPattern": null,
                     *           "stars": [
                     *             {
                     *               "branches": [
                     *                 "亥",
                     *                 "酉"
                     *               ],
                     *               "star": "天乙贵人"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "巳"
                     *               ],
                     *               "star": "禄神"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "午"
                     *               ],
                     *               "star": "羊刃"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "申"
                     *               ],
                     *               "star": "文昌"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "寅"
                     *               ],
                     *               "star": "驿马"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "酉"
                     *               ],
                     *               "star": "桃花"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "子"
                     *               ],
                     *               "star": "将星"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "辰"
                     *               ],
                     *               "star": "华盖"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "巳"
                     *               ],
                     *               "star": "劫煞"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "亥"
                     *               ],
                     *               "star": "天医"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "未"
                     *               ],
                     *               "star": "天喜"
                     *             }
                     *           ]
                     *         },
                     *         "classic": {
                     *           "judgement": {
                     *             "simplified": "元亨，利贞。勿用有攸往，利建侯。",
                     *             "traditional": "元亨，利貞。勿用有攸往，利建侯。"
                     *           },
                     *           "lines": [
                     *             {
                     *               "simplified": "磐桓，利居贞，利建侯。",
                     *               "traditional": "磐桓，利居貞，利建侯。"
                     *             },
                     *             {
                     *               "simplified": "屯如邅如，乘马班如。匪寇婚媾。女子贞不字，十年乃字。",
                     *               "traditional": "屯如邅如，乘馬班如。匪寇婚媾。女子貞不字，十年乃字。"
                     *             },
                     *             {
                     *               "simplified": "即鹿无虞，惟入于林中。君子几不如舍，往吝。",
                     *               "traditional": "即鹿无虞，惟入于林中。君子幾不如舍，往吝。"
                     *             },
                     *             {
                     *               "simplified": "乘马班如，求婚媾。往吉，无不利。",
                     *               "traditional": "乘馬班如，求婚媾。往吉，无不利。"
                     *             },
                     *             {
                     *               "simplified": "屯其膏。小贞吉，大贞凶。",
                     *               "traditional": "屯其膏。小貞吉，大貞凶。"
                     *             },
                     *             {
                     *               "simplified": "乘马班如，泣血涟如。",
                     *               "traditional": "乘馬班如，泣血漣如。"
                     *             }
                     *           ],
                     *           "reading": {
                     *             "rule": "one_changing",
                     *             "texts": [
                     *               {
                     *                 "hexagram": 3,
                     *                 "isMain": true,
                     *                 "label": "上六",
                     *                 "part": "line",
                     *                 "plain": "骑马徘徊，哭得血泪涟涟，困在尽头不是长久之计，该另寻出路。",
                     *                 "position": 6,
                     *                 "text": {
                     *                   "simplified": "乘马班如，泣血涟如。",
                     *                   "traditional": "乘馬班如，泣血漣如。"
                     *                 }
                     *               }
                     *             ]
                     *           }
                     *         },
                     *         "createdAt": "2026-01-02T03:04:05.678Z",
                     *         "durationMs": 2,
                     *         "finishReason": "stop",
                     *         "model": "builtin-1",
                     *         "promptVersion": "2",
                     *         "provider": "builtin",
                     *         "rating": {
                     *           "helpful": true,
                     *           "note": "讲得很清楚。",
                     *           "ratedAt": "2026-01-02T03:05:06.789Z"
                     *         },
                     *         "result": "水雷屯：万事起头难……",
                     *         "status": "succeeded",
                     *         "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
                     *         "usage": {
                     *           "completionTokens": 420,
                     *           "promptTokens": 180
                     *         }
                     *       },
                     *       "interpretations": [
                     *         {
                     *           "createdAt": "2026-01-02T03:04:05.678Z",
                     *           "durationMs": 2,
                     *           "finishReason": "stop",
                     *           "model": "builtin-1",
                     *           "promptVersion": "2",
                     *           "provider": "builtin",
                     *           "rating": {
                     *             "helpful": true,
                     *             "note": "讲得很清楚。",
                     *             "ratedAt": "2026-01-02T03:05:06.789Z"
                     *           },
                     *           "result": "水雷屯：万事起头难……",
                     *           "status": "succeeded",
                     *           "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
                     *           "usage": {
                     *             "completionTokens": 420,
                     *             "promptTokens": 180
                     *           }
                     *         }
                     *       ],
                     *       "interpretedAt": "2026-01-02T03:05:06.789Z",
                     *       "lines": [
                     *         7,
                     *         8,
                     *         8,
                     *         8,
                     *         7,
                     *         6
                     *       ],
                     *       "method": "numbers",
                     *       "nextInterpretationPoints": 0,
                     *       "note": "三月面试后再看。",
                     *       "pointsSpent": 10,
                     *       "question": "今年换工作合适吗？",
                     *       "questionType": "career",
                     *       "remainingInterpretations": 2,
                     *       "timeZone": "Asia/Shanghai",
                     *       "title": "换工作"
                     *     }
                     */
                    "application/json": components["schemas"]["Session"];
                };
            };
        };
    };
    deleteSession: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The session's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            204: {
                headers: {
                    [name: string]: unknown;
                };
                content?: never;
            };
        };
    };
    annotateSession: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The session's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "title": "换工作"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The user's note about the session. Moderated. An empty text deletes it.
                     * @example 三月面试后再看。
                     */
                    note?: string;
                    /**
                     * @description The user's title of the session. Moderated. An empty text deletes it.
                     * @example 换工作
                     */
                    title?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "balance": 80,
                     *       "castAt": "2026-01-02T03:04:05.678Z",
                     *       "chart": {
                     *         "bodyBranch": "未",
                     *         "echoes": [],
                     *         "lines": [
                     *           {
                     *             "becomes": null,
                     *             "branch": "子",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "扶",
                     *             "element": "water",
                     *             "growthStage": "帝旺",
                     *             "hidden": null,
                     *             "kin": "兄弟",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 1,
                     *             "role": null,
                     *             "spirit": "朱雀",
                     *             "stem": "庚",
                     *             "strength": "旺",
                     *             "value": 7,
                     *             "void": false
                     *           },
                     *           {
                     *             "becomes": null,
                     *             "branch": "寅",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "生",
                     *             "element": "wood",
                     *             "growthStage": "沐浴",
                     *             "hidden": null,
                     *             "kin": "子孙",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 2,
                     *             "role": "世",
                     *             "spirit": "勾陈",
                     *             "stem": "庚",
                     *             "strength": "相",
                     *             "value": 8,
                     *             "void": false
                     *           },
                     *           {
                     *             "becomes": null,
                     *             "branch": "辰",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "耗",
                     *             "element": "earth",
                     *             "growthStage": "帝旺",
                     *             "hidden": {
                     *               "branch": "午",
                     *               "dayClash": true,
                     *               "dayCombination": false,
                     *               "dayEffect": "克",
                     *               "element": "fire",
                     *               "growthStage": "胎",
                     *               "kin": "妻财",
                     *               "monthBreak": true,
                     *               "monthCombination": false,
                     *               "stem": "戊",
                     *               "strength": "死",
                     *               "void": false
                     *             },
                     *             "kin": "官鬼",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 3,
                     *             "role": null,
                     *             "spirit": "螣蛇",
                     *             "stem": "庚",
                     *             "strength": "囚",
                     *             "value": 8,
                     *             "void": false
                     *           },
                     *           {
                     *             "becomes": null,
                     *             "branch": "申",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "泄",
                     *             "element": "metal",
                     *             "growthStage": "死",
                     *             "hidden": null,
                     *             "kin": "父母",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 4,
                     *             "role": null,
                     *             "spirit": "白虎",
                     *             "stem": "戊",
                     *             "strength": "休",
                     *             "value": 8,
                     *             "void": true
                     *           },
                     *           {
                     *             "becomes": null,
                     *             "branch": "戌",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "耗",
                     *             "element": "earth",
                     *             "growthStage": "帝旺",
                     *             "hidden": null,
                     *             "kin": "官鬼",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 5,
                     *             "role": "应",
                     *             "spirit": "玄武",
                     *             "stem": "戊",
                     *             "strength": "囚",
                     *             "value": 7,
                     *             "void": false
                     *           },
                     *           {
                     *             "becomes": {
                     *               "branch": "卯",
                     *               "clash": false,
                     *               "combination": false,
                     *               "dayClash": false,
                     *               "dayCombination": false,
                     *               "dayEffect": "生",
                     *               "element": "wood",
                     *               "growthStage": "沐浴",
                     *               "kin": "子孙",
                     *               "monthBreak": false,
                     *               "monthCombination": false,
                     *               "progress": null,
                     *               "relation": "化泄",
                     *               "stage": "死",
                     *               "stem": "辛",
                     *               "strength": "相",
                     *               "void": false
                     *             },
                     *             "branch": "子",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "扶",
                     *             "element": "water",
                     *             "growthStage": "帝旺",
                     *             "hidden": null,
                     *             "kin": "兄弟",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 6,
                     *             "role": null,
                     *             "spirit": "青龙",
                     *             "stem": "戊",
                     *             "strength": "旺",
                     *             "value": 6,
                     *             "void": false
                     *           }
                     *         ],
                     *         "marks": [
                     *           {
                     *             "element": null,
                     *             "kind": "独发",
                     *             "positions": [
                     *               6
                     *             ],
                     *             "waitsFor": null
                     *           }
                     *         ],
                     *         "moment": {
                     *           "clock": "civil",
                     *           "dayStart": "23:00",
                     *           "local": "2026-01-02T11:04:05+08:00",
                     *           "lunar": {
                     *             "day": 14,
                     *             "isLeapMonth": false,
                     *             "month": 11,
                     *             "year": 2025
                     *           },
                     *           "nearBoundary": [],
                     *           "pillars": {
                     *             "day": "丙子",
                     *             "hour": "甲午",
                     *             "month": "戊子",
                     *             "year": "乙巳"
                     *           },
                     *           "void": [
                     *             "申",
                     *             "酉"
                     *           ]
                     *         },
                     *         "palace": {
                     *           "element": "water",
                     *           "stage": "second",
                     *           "trigram": "坎"
                     *         },
                     *         "pattern": null,
                     *         "relatingLines": [
                     *           {
                     *             "branch": "子",
                     *             "element": "water",
                     *             "kin": "兄弟",
                     *             "stem": "庚"
                     *           },
                     *           {
                     *             "branch": "寅",
                     *             "element": "wood",
                     *             "kin": "子孙",
                     *             "stem": "庚"
                     *           },
                     *           {
                     *             "branch": "辰",
                     *             "element": "earth",
                     *             "kin": "官鬼",
                     *             "stem": "庚"
                     *           },
                     *           {
                     *             "branch": "未",
                     *             "element": "earth",
                     *             "kin": "官鬼",
                     *             "stem": "辛"
                     *           },
                     *           {
                     *             "branch": "巳",
                     *             "element": "fire",
                     *             "kin": "妻财",
                     *             "stem": "辛"
                     *           },
                     *           {
                     *             "branch": "卯",
                     *             "element": "wood",
                     *             "kin": "子孙",
                     *             "stem": "辛"
                     *           }
                     *         ],
                     *         "relatingPattern": null,
                     *         "stars": [
                     *           {
                     *             "branches": [
                     *               "亥",
                     *               "酉"
                     *             ],
                     *             "star": "天乙贵人"
                     *           },
                     *           {
                     *             "branches": [
                     *               "巳"
                     *             ],
                     *             "star": "禄神"
                     *           },
                     *           {
                     *             "branches": [
                     *               "午"
                     *             ],
                     *             "star": "羊刃"
                     *           },
                     *           {
                     *             "branches": [
                     *               "申"
                     *             ],
                     *             "star": "文昌"
                     *           },
                     *           {
                     *             "branches": [
                     *               "寅"
                     *             ],
                     *             "star": "驿马"
                     *           },
                     *           {
                     *             "branches": [
                     *               "酉"
                     *             ],
                     *             "star": "桃花"
                     *           },
                     *           {
                     *             "branches": [
                     *               "子"
                     *             ],
                     *             "star": "将星"
                     *           },
                     *           {
                     *             "branches": [
                     *               "辰"
                     *             ],
                     *             "star": "华盖"
                     *           },
                     *           {
                     *             "branches": [
                     *               "巳"
                     *             ],
                     *             "star": "劫煞"
                     *           },
                     *           {
                     *             "branches": [
                     *               "亥"
                     *             ],
                     *             "star": "天医"
                     *           },
                     *           {
                     *             "branches": [
                     *               "未"
                     *             ],
                     *             "star": "天喜"
                     *           }
                     *         ]
                     *       },
                     *       "classic": {
                     *         "judgement": {
                     *           "simplified": "元亨，利贞。勿用有攸往，利建侯。",
                     *           "traditional": "元亨，利貞。勿用有攸往，利建侯。"
                     *         },
                     *         "lines": [
                     *           {
                     *             "simplified": "磐桓，利居贞，利建侯。",
                     *             "traditional": "磐桓，利居貞，利建侯。"
                     *           },
                     *           {
                     *             "simplified": "屯如邅如，乘马班如。匪寇婚媾。女子贞不字，十年乃字。",
                     *             "traditional": "屯如邅如，乘馬班如。匪寇婚媾。女子貞不字，十年乃字。"
                     *           },
                     *           {
                     *             "simplified": "即鹿无虞，惟入于林中。君子几不如舍，往吝。",
                     *             "traditional": "即鹿无虞，惟入于林中。君子幾不如舍，往吝。"
                     *           },
                     *           {
                     *             "simplified": "乘马班如，求婚媾。往吉，无不利。",
                     *             "traditional": "乘馬班如，求婚媾。往吉，无不利。"
                     *           },
                     *           {
                     *             "simplified": "屯其膏。小贞吉，大贞凶。",
                     *             "traditional": "屯其膏。小貞吉，大貞凶。"
                     *           },
                     *           {
                     *             "simplified": "乘马班如，泣血涟如。",
                     *             "traditional": "乘馬班如，泣血漣如。"
                     *           }
                     *         ],
                     *         "reading": {
                     *           "rule": "one_changing",
                     *           "texts": [
                     *             {
                     *               "hexagram": 3,
                     *               "isMain": true,
                     *               "label": "上六",
                     *               "part": "line",
                     *               "plain": "骑马徘徊，哭得血泪涟涟，困在尽头不是长久之计，该另寻出路。",
                     *               "position": 6,
                     *               "text": {
                     *                 "simplified": "乘马班如，泣血涟如。",
                     *                 "traditional": "乘馬班如，泣血漣如。"
                     *               }
                     *             }
                     *           ]
                     *         }
                     *       },
                     *       "createdAt": "2026-01-02T03:04:05.678Z",
                     *       "derivation": {
                     *         "bodyAndUse": {
                     *           "body": {
                     *             "element": "wood",
                     *             "half": "lower",
                     *             "trigram": "震"
                     *           },
                     *           "changed": {
                     *             "element": "wood",
                     *             "half": "upper",
                     *             "relation": "比和",
                     *             "trigram": "巽"
                     *           },
                     *           "nuclear": [
                     *             {
                     *               "element": "earth",
                     *               "half": "lower",
                     *               "relation": "体克",
                     *               "trigram": "坤"
                     *             },
                     *             {
                     *               "element": "earth",
                     *               "half": "upper",
                     *               "relation": "体克",
                     *               "trigram": "艮"
                     *             }
                     *           ],
                     *           "use": {
                     *             "element": "water",
                     *             "half": "upper",
                     *             "relation": "生体",
                     *             "trigram": "坎"
                     *           }
                     *         },
                     *         "changingLine": {
                     *           "position": 6,
                     *           "sum": 6
                     *         },
                     *         "lower": {
                     *           "remainder": 4,
                     *           "sum": 4,
                     *           "trigram": "震"
                     *         },
                     *         "source": {
                     *           "kind": "three_numbers",
                     *           "line": 6,
                     *           "lower": 4,
                     *           "upper": 6
                     *         },
                     *         "upper": {
                     *           "remainder": 6,
                     *           "sum": 6,
                     *           "trigram": "坎"
                     *         }
                     *       },
                     *       "hexagram": {
                     *         "changing": [
                     *           6
                     *         ],
                     *         "nuclear": {
                     *           "chineseFullName": "水雷屯",
                     *           "chineseName": "屯",
                     *           "englishName": "Difficulty at the Beginning",
                     *           "lower": {
                     *             "chineseName": "坎",
                     *             "englishName": "The Abysmal",
                     *             "pinyin": "kǎn",
                     *             "sign": "☵"
                     *           },
                     *           "number": 3,
                     *           "pinyin": "zhūn",
                     *           "sign": "䷂",
                     *           "upper": {
                     *             "chineseName": "坎",
                     *             "englishName": "The Abysmal",
                     *             "pinyin": "kǎn",
                     *             "sign": "☵"
                     *           }
                     *         },
                     *         "primary": {
                     *           "chineseFullName": "水雷屯",
                     *           "chineseName": "屯",
                     *           "englishName": "Difficulty at the Beginning",
                     *           "lower": {
                     *             "chineseName": "坎",
                     *             "englishName": "The Abysmal",
                     *             "pinyin": "kǎn",
                     *             "sign": "☵"
                     *           },
                     *           "number": 3,
                     *           "pinyin": "zhūn",
                     *           "sign": "䷂",
                     *           "upper": {
                     *             "chineseName": "坎",
                     *             "englishName": "The Abysmal",
                     *             "pinyin": "kǎn",
                     *             "sign": "☵"
                     *           }
                     *         },
                     *         "relating": {
                     *           "chineseFullName": "水雷屯",
                     *           "chineseName": "屯",
                     *           "englishName": "Difficulty at the Beginning",
                     *           "lower": {
                     *             "chineseName": "坎",
                     *             "englishName": "The Abysmal",
                     *             "pinyin": "kǎn",
                     *             "sign": "☵"
                     *           },
                     *           "number": 3,
                     *           "pinyin": "zhūn",
                     *           "sign": "䷂",
                     *           "upper": {
                     *             "chineseName": "坎",
                     *             "englishName": "The Abysmal",
                     *             "pinyin": "kǎn",
                     *             "sign": "☵"
                     *           }
                     *         }
                     *       },
                     *       "id": "9b1f7c0e2a4d4e6f8a0b1c2d3e4f5061",
                     *       "interpretation": {
                     *         "chart": {
                     *           "bodyBranch": "未",
                     *           "echoes": [],
                     *           "lines": [
                     *             {
                     *               "becomes": null,
                     *               "branch": "子",
                     *               "clashEffect": null,
                     *               "dayClash": false,
                     *               "dayCombination": false,
                     *               "dayEffect": "扶",
                     *               "element": "water",
                     *               "growthStage": "帝旺",
                     *               "hidden": null,
                     *               "kin": "兄弟",
                     *               "monthBreak": false,
                     *               "monthCombination": false,
                     *               "position": 1,
                     *               "role": null,
                     *               "spirit": "朱雀",
                     *               "stem": "庚",
                     *               "strength": "旺",
                     *               "value": 7,
                     *               "void": false
                     *             },
                     *             {
                     *               "becomes": null,
                     *               "branch": "寅",
                     *               "clashEffect": null,
                     *               "dayClash": false,
                     *               "dayCombination": false,
                     *               "dayEffect": "生",
                     *               "element": "wood",
                     *               "growthStage": "沐浴",
                     *               "hidden": null,
                     *               "kin": "子孙",
                     *               "monthBreak": false,
                     *               "monthCombination": false,
                     *               "position": 2,
                     *               "role": "世",
                     *               "spirit": "勾陈",
                     *               "stem": "庚",
                     *               "strength": "相",
                     *               "value": 8,
                     *               "void": false
                     *             },
                     *             {
                     *               "becomes": null,
                     *               "branch": "辰",
                     *               "clashEffect": null,
                     *               "dayClash": false,
                     *               "dayCombination": false,
                     *               "dayEffect": "耗",
                     *               "element": "earth",
                     *               "growthStage": "帝旺",
                     *               "hidden": {
                     *                 "branch": "午",
                     *                 "dayClash": true,
                     *                 "dayCombination": false,
                     *                 "dayEffect": "克",
                     *                 "element": "fire",
                     *                 "growthStage": "胎",
                     *                 "kin": "妻财",
                     *                 "monthBreak": true,
                     *                 "monthCombination": false,
                     *                 "stem": "戊",
                     *                 "strength": "死",
                     *                 "void": false
                     *               },
                     *               "kin": "官鬼",
                     *               "monthBreak": false,
                     *               "monthCombination": false,
                     *               "position": 3,
                     *               "role": null,
                     *               "spirit": "螣蛇",
                     *               "stem": "庚",
                     *               "strength": "囚",
                     *               "value": 8,
                     *               "void": false
                     *             },
                     *             {
                     *               "becomes": null,
                     *               "branch": "申",
                     *               "clashEffect": null,
                     *               "dayClash": false,
                     *               "dayCombination": false,
                     *               "dayEffect": "泄",
                     *               "element": "metal",
                     *               "growthStage": "死",
                     *               "hidden": null,
                     *               "kin": "父母",
                     *               "monthBreak": false,
                     *               "monthCombination": false,
                     *               "position": 4,
                     *               "role": null,
                     *               "spirit": "白虎",
                     *               "stem": "戊",
                     *               "strength": "休",
                     *               "value": 8,
                     *               "void": true
                     *             },
                     *             {
                     *               "becomes": null,
                     *               "branch": "戌",
                     *               "clashEffect": null,
                     *               "dayClash": false,
                     *               "dayCombination": false,
                     *               "dayEffect": "耗",
                     *               "element": "earth",
                     *               "growthStage": "帝旺",
                     *               "hidden": null,
                     *               "kin": "官鬼",
                     *               "monthBreak": false,
                     *               "monthCombination": false,
                     *               "position": 5,
                     *               "role": "应",
                     *               "spirit": "玄武",
                     *               "stem": "戊",
                     *               "strength": "囚",
                     *               "value": 7,
                     *               "void": false
                     *             },
                     *             {
                     *               "becomes": {
                     *                 "branch": "卯",
                     *                 "clash": false,
                     *                 "combination": false,
                     *                 "dayClash": false,
                     *                 "dayCombination": false,
                     *                 "dayEffect": "生",
                     *                 "element": "wood",
                     *                 "growthStage": "沐浴",
                     *                 "kin": "子孙",
                     *                 "monthBreak": false,
                     *                 "monthCombination": false,
                     *                 "progress": null,
                     *                 "relation": "化泄",
                     *                 "stage": "死",
                     *                 "stem": "辛",
                     *                 "strength": "相",
                     *                 "void": false
                     *               },
                     *               "branch": "子",
                     *               "clashEffect": null,
                     *               "dayClash": false,
                     *               "dayCombination": false,
                     *               "dayEffect": "扶",
                     *               "element": "water",
                     *               "growthStage": "帝旺",
                     *               "hidden": null,
                     *               "kin": "兄弟",
                     *               "monthBreak": false,
                     *               "monthCombination": false,
                     *               "position": 6,
                     *               "role": null,
                     *               "spirit": "青龙",
                     *               "stem": "戊",
                     *               "strength": "旺",
                     *               "value": 6,
                     *               "void": false
                     *             }
                     *           ],
                     *           "marks": [
                     *             {
                     *               "element": null,
                     *               "kind": "独发",
                     *               "positions": [
                     *                 6
                     *               ],
                     *               "waitsFor": null
                     *             }
                     *           ],
                     *           "moment": {
                     *             "clock": "civil",
                     *             "dayStart": "23:00",
                     *             "local": "2026-01-02T11:04:05+08:00",
                     *             "lunar": {
                     *               "day": 14,
                     *               "isLeapMonth": false,
                     *               "month": 11,
                     *               "year": 2025
                     *             },
                     *             "nearBoundary": [],
                     *             "pillars": {
                     *               "day": "丙子",
                     *               "hour": "甲午",
                     *               "month": "戊子",
                     *               "year": "乙巳"
                     *             },
                     *             "void": [
                     *               "申",
                     *               "酉"
                     *             ]
                     *           },
                     *           "palace": {
                     *             "element": "water",
                     *             "stage": "second",
                     *             "trigram": "坎"
                     *           },
                     *           "pattern": null,
                     *           "relatingLines": [
                     *             {
                     *               "branch": "子",
                     *               "element": "water",
                     *               "kin": "兄弟",
                     *               "stem": "庚"
                     *             },
                     *             {
                     *               "branch": "寅",
                     *               "element": "wood",
                     *               "kin": "子孙",
                     *               "stem": "庚"
                     *             },
                     *             {
                     *               "branch": "辰",
                     *               "element": "earth",
                     *               "kin": "官鬼",
                     *               "stem": "庚"
                     *             },
                     *             {
                     *               "branch": "未",
                     *               "element": "earth",
                     *               "kin": "官鬼",
                     *               "stem": "辛"
                     *             },
                     *             {
                     *               "branch": "巳",
                     *               "element": "fire",
                     *               "kin": "妻财",
                     *               "stem": "辛"
                     *             },
                     *             {
                     *               "branch": "卯",
                     *               "element": "wood",
                     *               "kin": "子孙",
                     *               "stem": "辛"
                     *             }
                     *           ],
                     *           "relatingPattern": null,
                     *           "stars": [
                     *             {
                     *               "branches": [
                     *                 "亥",
                     *                 "酉"
                     *               ],
                     *               "star": "天乙贵人"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "巳"
                     *               ],
                     *               "star": "禄神"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "午"
                     *               ],
                     *               "star": "羊刃"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "申"
                     *               ],
                     *               "star": "文昌"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "寅"
                     *               ],
                     *               "star": "驿马"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "酉"
                     *               ],
                     *               "star": "桃花"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "子"
                     *               ],
                     *               "star": "将星"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "辰"
                     *               ],
                     *               "star": "华盖"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "巳"
                     *               ],
                     *               "star": "劫煞"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "亥"
                     *               ],
                     *               "star": "天医"
                     *             },
                     *             {
                     *               "branches": [
                     *                 "未"
                     *               ],
                     *               "star": "天喜"
                     *             }
                     *           ]
                     *         },
                     *         "classic": {
                     *           "judgement": {
                     *             "simplified": "元亨，利贞。勿用有攸往，利建侯。",
                     *             "traditional": "元亨，利貞。勿用有攸往，利建侯。"
                     *           },
                     *           "lines": [
                     *             {
                     *               "simplified": "磐桓，利居贞，利建侯。",
                     *               "traditional": "磐桓，利居貞，利建侯。"
                     *             },
                     *             {
                     *               "simplified": "屯如邅如，乘马班如。匪寇婚媾。女子贞不字，十年乃字。",
                     *               "traditional": "屯如邅如，乘馬班如。匪寇婚媾。女子貞不字，十年乃字。"
                     *             },
                     *             {
                     *               "simplified": "即鹿无虞，惟入于林中。君子几不如舍，往吝。",
                     *               "traditional": "即鹿无虞，惟入于林中。君子幾不如舍，往吝。"
                     *             },
                     *             {
                     *               "simplified": "乘马班如，求婚媾。往吉，无不利。",
                     *               "traditional": "乘馬班如，求婚媾。往吉，无不利。"
                     *             },
                     *             {
                     *               "simplified": "屯其膏。小贞吉，大贞凶。",
                     *               "traditional": "屯其膏。小貞吉，大貞凶。"
                     *             },
                     *             {
                     *               "simplified": "乘马班如，泣血涟如。",
                     *               "traditional": "乘馬班如，泣血漣如。"
                     *             }
                     *           ],
                     *           "reading": {
                     *             "rule": "one_changing",
                     *             "texts": [
                     *               {
                     *                 "hexagram": 3,
                     *                 "isMain": true,
                     *                 "label": "上六",
                     *                 "part": "line",
                     *                 "plain": "骑马徘徊，哭得血泪涟涟，困在尽头不是长久之计，该另寻出路。",
                     *                 "position": 6,
                     *                 "text": {
                     *                   "simplified": "乘马班如，泣血涟如。",
                     *                   "traditional": "乘馬班如，泣血漣如。"
                     *                 }
                     *               }
                     *             ]
                     *           }
                     *         },
                     *         "createdAt": "2026-01-02T03:04:05.678Z",
                     *         "durationMs": 2,
                     *         "finishReason": "stop",
                     *         "model": "builtin-1",
                     *         "promptVersion": "2",
                     *         "provider": "builtin",
                     *         "rating": {
                     *           "helpful": true,
                     *           "note": "讲得很清楚。",
                     *           "ratedAt": "2026-01-02T03:05:06.789Z"
                     *         },
                     *         "result": "水雷屯：万事起头难……",
                     *         "status": "succeeded",
                     *         "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
                     *         "usage": {
                     *           "completionTokens": 420,
                     *           "promptTokens": 180
                     *         }
                     *       },
                     *       "interpretations": [
                     *         {
                     *           "createdAt": "2026-01-02T03:04:05.678Z",
                     *           "durationMs": 2,
                     *           "finishReason": "stop",
                     *           "model": "builtin-1",
                     *           "promptVersion": "2",
                     *           "provider": "builtin",
                     *           "rating": {
                     *             "helpful": true,
                     *             "note": "讲得很清楚。",
                     *             "ratedAt": "2026-01-02T03:05:06.789Z"
                     *           },
                     *           "result": "水雷屯：万事起头难……",
                     *           "status": "succeeded",
                     *           "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
                     *           "usage": {
                     *             "completionTokens": 420,
                     *             "promptTokens": 180
                     *           }
                     *         }
                     *       ],
                     *       "interpretedAt": "2026-01-02T03:05:06.789Z",
                     *       "lines": [
                     *         7,
                     *         8,
                     *         8,
                     *         8,
                     *         7,
                     *         6
                     *       ],
                     *       "method": "numbers",
                     *       "nextInterpretationPoints": 0,
                     *       "note": "三月面试后再看。",
                     *       "pointsSpent": 10,
                     *       "question": "今年换工作合适吗？",
                     *       "questionType": "career",
                     *       "remainingInterpretations": 2,
                     *       "timeZone": "Asia/Shanghai",
                     *       "title": "换工作"
                     *     }
                     */
                    "application/json": components["schemas"]["Session"];
                };
            };
        };
    };
    drawSessionCard: {
        parameters: {
            query?: {
                /** @description The language of the picture, such as `zh-TW` for traditional characters. Default: that of the preferences, or of `Accept-Language`. */
                lang?: components["schemas"]["Locale"];
                /** @description Show the question. Default: false. */
                question?: boolean;
                /** @description Light or dark colours, or those that the reader's system prefers. Default: `auto`. */
                theme?: components["schemas"]["CardTheme"];
            };
            header?: never;
            path: {
                /** @description The session's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description The picture. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    "image/svg+xml": string;
                };
            };
        };
    };
    interpretSession: {
        parameters: {
            query?: never;
            header?: {
                /** @description A text chosen by the client. A repeated request with the same key is executed once; repetitions get the first response with `Idempotency-Replayed: true`. */
                "Idempotency-Key"?: string;
                /** @description The id of the last event that the client has received. The stream continues after it. */
                "Last-Event-ID"?: string;
            };
            path: {
                /** @description The session's id. */
                id: string;
            };
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "again": true
                 *     }
                 */
                "application/json": {
                    /**
                     * @description True for another interpretation, even if there is one. Earlier ones are kept.
                     * @example true
                     */
                    again?: boolean;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "chart": {
                     *         "bodyBranch": "未",
                     *         "echoes": [],
                     *         "lines": [
                     *           {
                     *             "becomes": null,
                     *             "branch": "子",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "扶",
                     *             "element": "water",
                     *             "growthStage": "帝旺",
                     *             "hidden": null,
                     *             "kin": "兄弟",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 1,
                     *             "role": null,
                     *             "spirit": "朱雀",
                     *             "stem": "庚",
                     *             "strength": "旺",
                     *             "value": 7,
                     *             "void": false
                     *           },
                     *           {
                     *             "becomes": null,
                     *             "branch": "寅",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "生",
                     *             "element": "wood",
                     *             "growthStage": "沐浴",
                     *             "hidden": null,
                     *             "kin": "子孙",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 2,
                     *             "role": "世",
                     *             "spirit": "勾陈",
                     *             "stem": "庚",
                     *             "strength": "相",
                     *             "value": 8,
                     *             "void": false
                     *           },
                     *           {
                     *             "becomes": null,
                     *             "branch": "辰",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "耗",
                     *             "element": "earth",
                     *             "growthStage": "帝旺",
                     *             "hidden": {
                     *               "branch": "午",
                     *               "dayClash": true,
                     *               "dayCombination": false,
                     *               "dayEffect": "克",
                     *               "element": "fire",
                     *               "growthStage": "胎",
                     *               "kin": "妻财",
                     *               "monthBreak": true,
                     *               "monthCombination": false,
                     *               "stem": "戊",
                     *               "strength": "死",
                     *               "void": false
                     *             },
                     *             "kin": "官鬼",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 3,
                     *             "role": null,
                     *             "spirit": "螣蛇",
                     *             "stem": "庚",
                     *             "strength": "囚",
                     *             "value": 8,
                     *             "void": false
                     *           },
                     *           {
                     *             "becomes": null,
                     *             "branch": "申",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "泄",
                     *             "element": "metal",
                     *             "growthStage": "死",
                     *             "hidden": null,
                     *             "kin": "父母",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 4,
                     *             "role": null,
                     *             "spirit": "白虎",
                     *             "stem": "戊",
                     *             "strength": "休",
                     *             "value": 8,
                     *             "void": true
                     *           },
                     *           {
                     *             "becomes": null,
                     *             "branch": "戌",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "耗",
                     *             "element": "earth",
                     *             "growthStage": "帝旺",
                     *             "hidden": null,
                     *             "kin": "官鬼",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 5,
                     *             "role": "应",
                     *             "spirit": "玄武",
                     *             "stem": "戊",
                     *             "strength": "囚",
                     *             "value": 7,
                     *             "void": false
                     *           },
                     *           {
                     *             "becomes": {
                     *               "branch": "卯",
                     *               "clash": false,
                     *               "combination": false,
                     *               "dayClash": false,
                     *               "dayCombination": false,
                     *               "dayEffect": "生",
                     *               "element": "wood",
                     *               "growthStage": "沐浴",
                     *               "kin": "子孙",
                     *               "monthBreak": false,
                     *               "monthCombination": false,
                     *               "progress": null,
                     *               "relation": "化泄",
                     *               "stage": "死",
                     *               "stem": "辛",
                     *               "strength": "相",
                     *               "void": false
                     *             },
                     *             "branch": "子",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "扶",
                     *             "element": "water",
                     *             "growthStage": "帝旺",
                     *             "hidden": null,
                     *             "kin": "兄弟",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 6,
                     *             "role": null,
                     *             "spirit": "青龙",
                     *             "stem": "戊",
                     *             "strength": "旺",
                     *             "value": 6,
                     *             "void": false
                     *           }
                     *         ],
                     *         "marks": [
                     *           {
                     *             "element": null,
                     *             "kind": "独发",
                     *             "positions": [
                     *               6
                     *             ],
                     *             "waitsFor": null
                     *           }
                     *         ],
                     *         "moment": {
                     *           "clock": "civil",
                     *           "dayStart": "23:00",
                     *           "local": "2026-01-02T11:04:05+08:00",
                     *           "lunar": {
                     *             "day": 14,
                     *             "isLeapMonth": false,
                     *             "month": 11,
                     *             "year": 2025
                     *           },
                     *           "nearBoundary": [],
                     *           "pillars": {
                     *             "day": "丙子",
                     *             "hour": "甲午",
                     *             "month": "戊子",
                     *             "year": "乙巳"
                     *           },
                     *           "void": [
                     *             "申",
                     *             "酉"
                     *           ]
                     *         },
                     *         "palace": {
                     *           "element": "water",
                     *           "stage": "second",
                     *           "trigram": "坎"
                     *         },
                     *         "pattern": null,
                     *         "relatingLines": [
                     *           {
                     *             "branch": "子",
                     *             "element": "water",
                     *             "kin": "兄弟",
                     *             "stem": "庚"
                     *           },
                     *           {
                     *             "branch": "寅",
                     *             "element": "wood",
                     *             "kin": "子孙",
                     *             "stem": "庚"
                     *           },
                     *           {
                     *             "branch": "辰",
                     *             "element": "earth",
                     *             "kin": "官鬼",
                     *             "stem": "庚"
                     *           },
                     *           {
                     *             "branch": "未",
                     *             "element": "earth",
                     *             "kin": "官鬼",
                     *             "stem": "辛"
                     *           },
                     *           {
                     *             "branch": "巳",
                     *             "element": "fire",
                     *             "kin": "妻财",
                     *             "stem": "辛"
                     *           },
                     *           {
                     *             "branch": "卯",
                     *             "element": "wood",
                     *             "kin": "子孙",
                     *             "stem": "辛"
                     *           }
                     *         ],
                     *         "relatingPattern": null,
                     *         "stars": [
                     *           {
                     *             "branches": [
                     *               "亥",
                     *               "酉"
                     *             ],
                     *             "star": "天乙贵人"
                     *           },
                     *           {
                     *             "branches": [
                     *               "巳"
                     *             ],
                     *             "star": "禄神"
                     *           },
                     *           {
                     *             "branches": [
                     *               "午"
                     *             ],
                     *             "star": "羊刃"
                     *           },
                     *           {
                     *             "branches": [
                     *               "申"
                     *             ],
                     *             "star": "文昌"
                     *           },
                     *           {
                     *             "branches": [
                     *               "寅"
                     *             ],
                     *             "star": "驿马"
                     *           },
                     *           {
                     *             "branches": [
                     *               "酉"
                     *             ],
                     *             "star": "桃花"
                     *           },
                     *           {
                     *             "branches": [
                     *               "子"
                     *             ],
                     *             "star": "将星"
                     *           },
                     *           {
                     *             "branches": [
                     *               "辰"
                     *             ],
                     *             "star": "华盖"
                     *           },
                     *           {
                     *             "branches": [
                     *               "巳"
                     *             ],
                     *             "star": "劫煞"
                     *           },
                     *           {
                     *             "branches": [
                     *               "亥"
                     *             ],
                     *             "star": "天医"
                     *           },
                     *           {
                     *             "branches": [
                     *               "未"
                     *             ],
                     *             "star": "天喜"
                     *           }
                     *         ]
                     *       },
                     *       "classic": {
                     *         "judgement": {
                     *           "simplified": "元亨，利贞。勿用有攸往，利建侯。",
                     *           "traditional": "元亨，利貞。勿用有攸往，利建侯。"
                     *         },
                     *         "lines": [
                     *           {
                     *             "simplified": "磐桓，利居贞，利建侯。",
                     *             "traditional": "磐桓，利居貞，利建侯。"
                     *           },
                     *           {
                     *             "simplified": "屯如邅如，乘马班如。匪寇婚媾。女子贞不字，十年乃字。",
                     *             "traditional": "屯如邅如，乘馬班如。匪寇婚媾。女子貞不字，十年乃字。"
                     *           },
                     *           {
                     *             "simplified": "即鹿无虞，惟入于林中。君子几不如舍，往吝。",
                     *             "traditional": "即鹿无虞，惟入于林中。君子幾不如舍，往吝。"
                     *           },
                     *           {
                     *             "simplified": "乘马班如，求婚媾。往吉，无不利。",
                     *             "traditional": "乘馬班如，求婚媾。往吉，无不利。"
                     *           },
                     *           {
                     *             "simplified": "屯其膏。小贞吉，大贞凶。",
                     *             "traditional": "屯其膏。小貞吉，大貞凶。"
                     *           },
                     *           {
                     *             "simplified": "乘马班如，泣血涟如。",
                     *             "traditional": "乘馬班如，泣血漣如。"
                     *           }
                     *         ],
                     *         "reading": {
                     *           "rule": "one_changing",
                     *           "texts": [
                     *             {
                     *               "hexagram": 3,
                     *               "isMain": true,
                     *               "label": "上六",
                     *               "part": "line",
                     *               "plain": "骑马徘徊，哭得血泪涟涟，困在尽头不是长久之计，该另寻出路。",
                     *               "position": 6,
                     *               "text": {
                     *                 "simplified": "乘马班如，泣血涟如。",
                     *                 "traditional": "乘馬班如，泣血漣如。"
                     *               }
                     *             }
                     *           ]
                     *         }
                     *       },
                     *       "createdAt": "2026-01-02T03:04:05.678Z",
                     *       "durationMs": 2,
                     *       "finishReason": "stop",
                     *       "model": "builtin-1",
                     *       "promptVersion": "2",
                     *       "provider": "builtin",
                     *       "rating": {
                     *         "helpful": true,
                     *         "note": "讲得很清楚。",
                     *         "ratedAt": "2026-01-02T03:05:06.789Z"
                     *       },
                     *       "result": "水雷屯：万事起头难……",
                     *       "status": "succeeded",
                     *       "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
                     *       "usage": {
                     *         "completionTokens": 420,
                     *         "promptTokens": 180
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["Interpretation"];
                    "text/event-stream": unknown;
                };
            };
        };
    };
    signInByIdentityV0: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "idToken": "eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl",
                 *       "provider": "apple"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The token of the SDK for number authentication, for `phone`.
                     * @example eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl
                     */
                    accessToken?: string;
                    /**
                     * @description The code that WeChat gave to the app, for `wechat`.
                     * @example eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl
                     */
                    code?: string;
                    /**
                     * @description The identity token, for `apple` and `google`. Each is good for one request.
                     * @example eyJhbGciOiJSUzI1NiJ9.eyJzdWIiOiIxIn0.c2lnbmF0dXJl
                     */
                    idToken?: string;
                    /**
                     * @description The nonce that the app chose for the identity token; for Apple the original, not its hash. Required if the token has one.
                     * @example n-0S6_WzA2Mj
                     */
                    nonce?: string;
                    /**
                     * @description `apple`, `google`, `wechat`, or `phone` for the number of the SIM card.
                     * @example apple
                     */
                    provider: components["schemas"]["ProofProvider"];
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "expiresAt": "2026-02-01T00:00:00.000Z",
                     *       "isNewUser": true,
                     *       "phoneNumber": "13800138000",
                     *       "token": "kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs",
                     *       "userId": "10001"
                     *     }
                     */
                    "application/json": components["schemas"]["SignedIn"];
                };
            };
        };
    };
    signInByPhone: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "code": "246810",
                 *       "phoneNumber": "13800138000"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The code from the message.
                     * @example 246810
                     */
                    code: string;
                    /**
                     * @description The number that the code was sent to.
                     * @example 13800138000
                     */
                    phoneNumber: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "expiresAt": "2026-02-01T00:00:00.000Z",
                     *       "isNewUser": true,
                     *       "phoneNumber": "13800138000",
                     *       "token": "kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs",
                     *       "userId": "10001"
                     *     }
                     */
                    "application/json": components["schemas"]["SignedIn"];
                };
            };
        };
    };
    signOutV0: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "token": "kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The token. Defaults to the one in the header.
                     * @example kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs
                     */
                    token?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "loggedOut": true
                     *     }
                     */
                    "application/json": components["schemas"]["LoggedOut"];
                };
            };
        };
    };
    refreshTokenV0: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "token": "kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The token. Defaults to the one in the header.
                     * @example kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs
                     */
                    token?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "expiresAt": "2026-02-01T00:00:00.000Z",
                     *       "token": "kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs"
                     *     }
                     */
                    "application/json": components["schemas"]["Renewed"];
                };
            };
        };
    };
    sendSmsCode: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "phoneNumber": "13800138000"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description Mobile number to send the code to, in any spelling.
                     * @example 13800138000
                     */
                    phoneNumber: string;
                    /**
                     * @description `sign_in` (default); `address` to add or change an account's number with `/api/v1/account/address`; `cancellation` to authorise the cancellation of an account.
                     * @example sign_in
                     */
                    purpose?: components["schemas"]["CodePurpose"];
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "expiresIn": 300,
                     *       "phoneNumber": "13800138000",
                     *       "resendAfter": 60
                     *     }
                     */
                    "application/json": components["schemas"]["CodeSent"];
                };
            };
        };
    };
    validateToken: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "token": "kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The token. Defaults to the one in the header.
                     * @example kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs
                     */
                    token?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "expiresAt": "2026-02-01T00:00:00.000Z",
                     *       "phoneNumber": "13800138000",
                     *       "refreshed": false,
                     *       "token": "kX8c0Qy3m1dJ7w5uV2sZ9pT4rB6nL0aHfGeYiOjKqWs",
                     *       "userId": "10001",
                     *       "valid": true
                     *     }
                     */
                    "application/json": components["schemas"]["Validity"];
                };
            };
        };
    };
    coinBalance: {
        parameters: {
            query?: {
                /** @description The user's phone number. */
                phoneNumber?: string;
                /** @description The user's id. The caller by default. */
                userId?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "balance": 59,
                     *       "phoneNumber": "13800138000",
                     *       "userId": "10001"
                     *     }
                     */
                    "application/json": components["schemas"]["CoinBalance"];
                };
            };
        };
    };
    coinBalanceByPhone: {
        parameters: {
            query?: {
                /** @description The user's phone number. */
                phoneNumber?: string;
                /** @description The user's id. The caller by default. */
                userId?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "balance": 59,
                     *       "phoneNumber": "13800138000",
                     *       "userId": "10001"
                     *     }
                     */
                    "application/json": components["schemas"]["CoinBalance"];
                };
            };
        };
    };
    consumeCoins: {
        parameters: {
            query?: never;
            header?: {
                /** @description A text chosen by the client. A repeated request with the same key is executed once; repetitions get the first response with `Idempotency-Replayed: true`. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "phoneNumber": "13800138000",
                 *       "userId": "10001"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The user's phone number.
                     * @example 13800138000
                     */
                    phoneNumber?: string;
                    /**
                     * @description The user's id. The caller by default.
                     * @example 10001
                     */
                    userId?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "balance": 58,
                     *       "consumed": 1,
                     *       "phoneNumber": "13800138000",
                     *       "userId": "10001"
                     *     }
                     */
                    "application/json": components["schemas"]["CoinsConsumed"];
                };
            };
        };
    };
    consumeCoinsByPhone: {
        parameters: {
            query?: never;
            header?: {
                /** @description A text chosen by the client. A repeated request with the same key is executed once; repetitions get the first response with `Idempotency-Replayed: true`. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "phoneNumber": "13800138000",
                 *       "userId": "10001"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The user's phone number.
                     * @example 13800138000
                     */
                    phoneNumber?: string;
                    /**
                     * @description The user's id. The caller by default.
                     * @example 10001
                     */
                    userId?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "balance": 58,
                     *       "consumed": 1,
                     *       "phoneNumber": "13800138000",
                     *       "userId": "10001"
                     *     }
                     */
                    "application/json": components["schemas"]["CoinsConsumed"];
                };
            };
        };
    };
    listCoinChanges: {
        parameters: {
            query?: {
                /** @description Page number. */
                page?: number;
                /** @description Entries on a page. */
                size?: number;
                /** @description The caller's own id. */
                userId?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "balanceAfter": 59,
                     *           "createdAt": "2026-01-02T03:04:05.678Z",
                     *           "delta": -1,
                     *           "kind": "topup",
                     *           "ref": "order:202601020123456789012345",
                     *           "sequence": 2
                     *         }
                     *       ],
                     *       "page": 1,
                     *       "size": 20,
                     *       "total": 1
                     *     }
                     */
                    "application/json": components["schemas"]["CoinEntryPage"];
                };
            };
        };
    };
    resetCoins: {
        parameters: {
            query?: never;
            header?: {
                /** @description A text chosen by the client. A repeated request with the same key is executed once; repetitions get the first response with `Idempotency-Replayed: true`. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "code": "246810",
                 *       "confirm": "correct horse battery staple",
                 *       "phoneNumber": "13800138000",
                 *       "reason": "compensation for a failed cast",
                 *       "userId": "10001"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description For users: a code sent to the own address, with or without a purpose, in place of a recent sign-in.
                     * @example 246810
                     */
                    code?: string;
                    /**
                     * @description For administrators: the token from the 428 response to the same request without it.
                     * @example correct horse battery staple
                     */
                    confirm?: string;
                    /**
                     * @description The user's phone number.
                     * @example 13800138000
                     */
                    phoneNumber?: string;
                    /**
                     * @description The reason. Required for administrators.
                     * @example compensation for a failed cast
                     */
                    reason?: string;
                    /**
                     * @description The user's id. The caller by default.
                     * @example 10001
                     */
                    userId?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "balance": 59,
                     *       "phoneNumber": "13800138000",
                     *       "userId": "10001"
                     *     }
                     */
                    "application/json": components["schemas"]["CoinBalance"];
                };
            };
        };
    };
    resetCoinsByPhone: {
        parameters: {
            query?: never;
            header?: {
                /** @description A text chosen by the client. A repeated request with the same key is executed once; repetitions get the first response with `Idempotency-Replayed: true`. */
                "Idempotency-Key"?: string;
            };
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "code": "246810",
                 *       "confirm": "correct horse battery staple",
                 *       "phoneNumber": "13800138000",
                 *       "reason": "compensation for a failed cast",
                 *       "userId": "10001"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description For users: a code sent to the own address, with or without a purpose, in place of a recent sign-in.
                     * @example 246810
                     */
                    code?: string;
                    /**
                     * @description For administrators: the token from the 428 response to the same request without it.
                     * @example correct horse battery staple
                     */
                    confirm?: string;
                    /**
                     * @description The user's phone number.
                     * @example 13800138000
                     */
                    phoneNumber?: string;
                    /**
                     * @description The reason. Required for administrators.
                     * @example compensation for a failed cast
                     */
                    reason?: string;
                    /**
                     * @description The user's id. The caller by default.
                     * @example 10001
                     */
                    userId?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "balance": 59,
                     *       "phoneNumber": "13800138000",
                     *       "userId": "10001"
                     *     }
                     */
                    "application/json": components["schemas"]["CoinBalance"];
                };
            };
        };
    };
    checkQuestion: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "question": "今年换工作合适吗？"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The question to check.
                     * @example 今年换工作合适吗？
                     */
                    question: string;
                    /**
                     * @description The caller's own id; for administrators, the id of any user.
                     * @example 10001
                     */
                    userId?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "allowed": true,
                     *       "contentType": "question",
                     *       "degraded": false,
                     *       "matches": [
                     *         {
                     *           "end": 5,
                     *           "severity": "medium",
                     *           "start": 2,
                     *           "tags": [
                     *             "spam"
                     *           ],
                     *           "text": "赌*博",
                     *           "type": "gambling",
                     *           "way": "exact",
                     *           "word": "赌博"
                     *         }
                     *       ],
                     *       "provider": "local"
                     *     }
                     */
                    "application/json": components["schemas"]["QuestionChecked"];
                };
            };
        };
    };
    countHistory: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The caller's own number. */
                phoneNumber: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "count": 12
                     *     }
                     */
                    "application/json": components["schemas"]["Counted"];
                };
            };
        };
    };
    deactivateHistory: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "phoneNumber": "13800138000",
                 *       "userId": "10001"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The caller's own number.
                     * @example 13800138000
                     */
                    phoneNumber?: string;
                    /**
                     * @description The caller's own id.
                     * @example 10001
                     */
                    userId?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "deactivated": 12
                     *     }
                     */
                    "application/json": components["schemas"]["Deactivated"];
                };
            };
        };
    };
    deleteHistory: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "localRecordId": "1746612345678",
                 *       "localRecordIds": [
                 *         "1746612345678"
                 *       ],
                 *       "phoneNumber": "13800138000",
                 *       "userId": "10001"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description One record.
                     * @example 1746612345678
                     */
                    localRecordId?: string;
                    /** @description Several records. */
                    localRecordIds?: string[];
                    /**
                     * @description The caller's own number.
                     * @example 13800138000
                     */
                    phoneNumber?: string;
                    /**
                     * @description The caller's own id.
                     * @example 10001
                     */
                    userId?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "deleted": 1
                     *     }
                     */
                    "application/json": components["schemas"]["Deleted"];
                };
            };
        };
    };
    listHistory: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "page": 1,
                 *       "phoneNumber": "13800138000",
                 *       "questionType": "career",
                 *       "size": 20,
                 *       "userId": "10001"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description Number of the page. Without `page` and `size`, up to 1000 records, or up to 8 MiB of them.
                     * @default 1
                     * @example 1
                     */
                    page?: number;
                    /**
                     * @description The caller's own number.
                     * @example 13800138000
                     */
                    phoneNumber?: string;
                    /**
                     * @description Only records of this type.
                     * @example career
                     */
                    questionType?: string;
                    /**
                     * @description Records on a page.
                     * @default 20
                     * @example 20
                     */
                    size?: number;
                    /**
                     * @description The caller's own id.
                     * @example 10001
                     */
                    userId?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "aiResult": "水雷屯：万事起头难……",
                     *           "createdAt": "2026-01-02T03:04:05.678Z",
                     *           "jsonData": null,
                     *           "localRecordId": "a1b2c3",
                     *           "phoneNumber": "13800138000",
                     *           "question": "今年换工作合适吗？",
                     *           "questionType": "career",
                     *           "timestamp": 1767225600000,
                     *           "updatedAt": "2026-01-02T03:04:05.678Z",
                     *           "userId": "10001",
                     *           "version": "42"
                     *         }
                     *       ],
                     *       "total": 1
                     *     }
                     */
                    "application/json": components["schemas"]["HistoryRecordList"];
                };
            };
        };
    };
    restoreHistory: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "phoneNumber": "13800138000",
                 *       "userId": "10001"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The caller's own number.
                     * @example 13800138000
                     */
                    phoneNumber?: string;
                    /**
                     * @description The caller's own id.
                     * @example 10001
                     */
                    userId?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "hidden": 0,
                     *       "restored": 12
                     *     }
                     */
                    "application/json": components["schemas"]["Restored"];
                };
            };
        };
    };
    saveHistory: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "jsonData": {
                 *         "lines": [
                 *           7,
                 *           8,
                 *           8,
                 *           8,
                 *           7,
                 *           6
                 *         ]
                 *       },
                 *       "localRecordId": "1746612345678",
                 *       "question": "今年换工作合适吗？",
                 *       "timestamp": 1767225600000
                 *     }
                 */
                "application/json": {
                    /**
                     * @description An interpretation that belongs to it.
                     * @example 水雷屯：万事起头难……
                     */
                    aiResult?: string;
                    /**
                     * @description The `version` of the record that was edited. If the record has another one or was deleted, nothing is saved (409 `version_conflict`). By default the last save wins.
                     * @example 42
                     */
                    baseVersion?: string;
                    /**
                     * @description The casting.
                     * @example {
                     *       "lines": [
                     *         7,
                     *         8,
                     *         8,
                     *         8,
                     *         7,
                     *         6
                     *       ]
                     *     }
                     */
                    jsonData?: unknown;
                    /**
                     * @description The client's id of the record. Saving it again changes only the fields that are sent.
                     * @example 1746612345678
                     */
                    localRecordId: string;
                    /**
                     * @description The caller's own number.
                     * @example 13800138000
                     */
                    phoneNumber?: string;
                    /**
                     * @description The question.
                     * @example 今年换工作合适吗？
                     */
                    question?: string;
                    /**
                     * @description The topic of the question.
                     * @example career
                     */
                    questionType?: string;
                    /**
                     * @description The client's own time. Returned as a number and not interpreted.
                     * @example 1767225600000
                     */
                    timestamp?: number;
                    /**
                     * @description The caller's own id.
                     * @example 10001
                     */
                    userId?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "aiResult": "水雷屯：万事起头难……",
                     *       "createdAt": "2026-01-02T03:04:05.678Z",
                     *       "jsonData": null,
                     *       "localRecordId": "a1b2c3",
                     *       "phoneNumber": "13800138000",
                     *       "question": "今年换工作合适吗？",
                     *       "questionType": "career",
                     *       "timestamp": 1767225600000,
                     *       "updatedAt": "2026-01-02T03:04:05.678Z",
                     *       "userId": "10001",
                     *       "version": "42"
                     *     }
                     */
                    "application/json": components["schemas"]["HistoryRecord"];
                };
            };
        };
    };
    saveHistoryBatch: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "records": [
                 *         {
                 *           "jsonData": {
                 *             "lines": [
                 *               7,
                 *               8,
                 *               8,
                 *               8,
                 *               7,
                 *               6
                 *             ]
                 *           },
                 *           "localRecordId": "a1b2c3",
                 *           "question": "今年换工作合适吗？"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": {
                    /** @description The records, each with the fields of `/divination-history/save`. The body may be a bare array of them. */
                    records?: {
                        /** @example 水雷屯：万事起头难…… */
                        aiResult?: string;
                        /** @example 42 */
                        baseVersion?: string;
                        /**
                         * @description Any JSON value or text; it comes back byte for byte.
                         * @example {
                         *       "lines": [
                         *         7,
                         *         8,
                         *         8,
                         *         8,
                         *         7,
                         *         6
                         *       ]
                         *     }
                         */
                        jsonData?: unknown;
                        /** @example 1746612345678 */
                        localRecordId: string;
                        /** @example 今年换工作合适吗？ */
                        question?: string;
                        /** @example career */
                        questionType?: string;
                        /** @example 1767225600000 */
                        timestamp?: number;
                    }[];
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "error": null,
                     *           "localRecordId": "a1b2c3",
                     *           "record": {
                     *             "aiResult": "水雷屯：万事起头难……",
                     *             "createdAt": "2026-01-02T03:04:05.678Z",
                     *             "jsonData": null,
                     *             "localRecordId": "a1b2c3",
                     *             "phoneNumber": "13800138000",
                     *             "question": "今年换工作合适吗？",
                     *             "questionType": "career",
                     *             "timestamp": 1767225600000,
                     *             "updatedAt": "2026-01-02T03:04:05.678Z",
                     *             "userId": "10001",
                     *             "version": "42"
                     *           },
                     *           "updatedAt": "2026-01-02T03:04:05.678Z",
                     *           "version": "42"
                     *         }
                     *       ]
                     *     }
                     */
                    "application/json": components["schemas"]["RecordsSaved"];
                };
            };
        };
    };
    interpretCasting: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "divinationData": {
                 *         "lines": [
                 *           7,
                 *           8,
                 *           8,
                 *           8,
                 *           7,
                 *           6
                 *         ]
                 *       },
                 *       "question": "今年换工作合适吗？"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description Time of the casting, for its chart. Without an offset it is read in `timeZone`.
                     * @example 2026-01-02T11:04:05+08:00
                     */
                    castAt?: string;
                    /**
                     * @description In place of `castAt`, the branch of the month and the pillar of the day, such as `戌月甲寅日`. `castAt` is then noon of the last such day; year and hour are those of that time.
                     * @example 戌月甲寅日
                     */
                    castPillars?: string;
                    /**
                     * @description The casting: lines, hexagram names, or any structure that contains them. Required without a question.
                     * @example {
                     *       "lines": [
                     *         7,
                     *         8,
                     *         8,
                     *         8,
                     *         7,
                     *         6
                     *       ]
                     *     }
                     */
                    divinationData?: unknown;
                    /**
                     * @description The caller's own number.
                     * @example 13800138000
                     */
                    phoneNumber?: string;
                    /**
                     * @description The question. Screened before a model sees it. Without one, the hexagram is read for itself.
                     * @example 今年换工作合适吗？
                     */
                    question?: string;
                    /**
                     * @description The topic of the question.
                     * @example career
                     */
                    questionType?: string;
                    /**
                     * @description Time zone of the user: an IANA name, or an offset such as `+08:00`. Default: the preference.
                     * @example Asia/Shanghai
                     */
                    timeZone?: string;
                    /**
                     * @description The caller's own id.
                     * @example 10001
                     */
                    userId?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "chart": {
                     *         "bodyBranch": "未",
                     *         "echoes": [],
                     *         "lines": [
                     *           {
                     *             "becomes": null,
                     *             "branch": "子",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "扶",
                     *             "element": "water",
                     *             "growthStage": "帝旺",
                     *             "hidden": null,
                     *             "kin": "兄弟",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 1,
                     *             "role": null,
                     *             "spirit": "朱雀",
                     *             "stem": "庚",
                     *             "strength": "旺",
                     *             "value": 7,
                     *             "void": false
                     *           },
                     *           {
                     *             "becomes": null,
                     *             "branch": "寅",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "生",
                     *             "element": "wood",
                     *             "growthStage": "沐浴",
                     *             "hidden": null,
                     *             "kin": "子孙",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 2,
                     *             "role": "世",
                     *             "spirit": "勾陈",
                     *             "stem": "庚",
                     *             "strength": "相",
                     *             "value": 8,
                     *             "void": false
                     *           },
                     *           {
                     *             "becomes": null,
                     *             "branch": "辰",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "耗",
                     *             "element": "earth",
                     *             "growthStage": "帝旺",
                     *             "hidden": {
                     *               "branch": "午",
                     *               "dayClash": true,
                     *               "dayCombination": false,
                     *               "dayEffect": "克",
                     *               "element": "fire",
                     *               "growthStage": "胎",
                     *               "kin": "妻财",
                     *               "monthBreak": true,
                     *               "monthCombination": false,
                     *               "stem": "戊",
                     *               "strength": "死",
                     *               "void": false
                     *             },
                     *             "kin": "官鬼",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 3,
                     *             "role": null,
                     *             "spirit": "螣蛇",
                     *             "stem": "庚",
                     *             "strength": "囚",
                     *             "value": 8,
                     *             "void": false
                     *           },
                     *           {
                     *             "becomes": null,
                     *             "branch": "申",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "泄",
                     *             "element": "metal",
                     *             "growthStage": "死",
                     *             "hidden": null,
                     *             "kin": "父母",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 4,
                     *             "role": null,
                     *             "spirit": "白虎",
                     *             "stem": "戊",
                     *             "strength": "休",
                     *             "value": 8,
                     *             "void": true
                     *           },
                     *           {
                     *             "becomes": null,
                     *             "branch": "戌",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "耗",
                     *             "element": "earth",
                     *             "growthStage": "帝旺",
                     *             "hidden": null,
                     *             "kin": "官鬼",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 5,
                     *             "role": "应",
                     *             "spirit": "玄武",
                     *             "stem": "戊",
                     *             "strength": "囚",
                     *             "value": 7,
                     *             "void": false
                     *           },
                     *           {
                     *             "becomes": {
                     *               "branch": "卯",
                     *               "clash": false,
                     *               "combination": false,
                     *               "dayClash": false,
                     *               "dayCombination": false,
                     *               "dayEffect": "生",
                     *               "element": "wood",
                     *               "growthStage": "沐浴",
                     *               "kin": "子孙",
                     *               "monthBreak": false,
                     *               "monthCombination": false,
                     *               "progress": null,
                     *               "relation": "化泄",
                     *               "stage": "死",
                     *               "stem": "辛",
                     *               "strength": "相",
                     *               "void": false
                     *             },
                     *             "branch": "子",
                     *             "clashEffect": null,
                     *             "dayClash": false,
                     *             "dayCombination": false,
                     *             "dayEffect": "扶",
                     *             "element": "water",
                     *             "growthStage": "帝旺",
                     *             "hidden": null,
                     *             "kin": "兄弟",
                     *             "monthBreak": false,
                     *             "monthCombination": false,
                     *             "position": 6,
                     *             "role": null,
                     *             "spirit": "青龙",
                     *             "stem": "戊",
                     *             "strength": "旺",
                     *             "value": 6,
                     *             "void": false
                     *           }
                     *         ],
                     *         "marks": [
                     *           {
                     *             "element": null,
                     *             "kind": "独发",
                     *             "positions": [
                     *               6
                     *             ],
                     *             "waitsFor": null
                     *           }
                     *         ],
                     *         "moment": {
                     *           "clock": "civil",
                     *           "dayStart": "23:00",
                     *           "local": "2026-01-02T11:04:05+08:00",
                     *           "lunar": {
                     *             "day": 14,
                     *             "isLeapMonth": false,
                     *             "month": 11,
                     *             "year": 2025
                     *           },
                     *           "nearBoundary": [],
                     *           "pillars": {
                     *             "day": "丙子",
                     *             "hour": "甲午",
                     *             "month": "戊子",
                     *             "year": "乙巳"
                     *           },
                     *           "void": [
                     *             "申",
                     *             "酉"
                     *           ]
                     *         },
                     *         "palace": {
                     *           "element": "water",
                     *           "stage": "second",
                     *           "trigram": "坎"
                     *         },
                     *         "pattern": null,
                     *         "relatingLines": [
                     *           {
                     *             "branch": "子",
                     *             "element": "water",
                     *             "kin": "兄弟",
                     *             "stem": "庚"
                     *           },
                     *           {
                     *             "branch": "寅",
                     *             "element": "wood",
                     *             "kin": "子孙",
                     *             "stem": "庚"
                     *           },
                     *           {
                     *             "branch": "辰",
                     *             "element": "earth",
                     *             "kin": "官鬼",
                     *             "stem": "庚"
                     *           },
                     *           {
                     *             "branch": "未",
                     *             "element": "earth",
                     *             "kin": "官鬼",
                     *             "stem": "辛"
                     *           },
                     *           {
                     *             "branch": "巳",
                     *             "element": "fire",
                     *             "kin": "妻财",
                     *             "stem": "辛"
                     *           },
                     *           {
                     *             "branch": "卯",
                     *             "element": "wood",
                     *             "kin": "子孙",
                     *             "stem": "辛"
                     *           }
                     *         ],
                     *         "relatingPattern": null,
                     *         "stars": [
                     *           {
                     *             "branches": [
                     *               "亥",
                     *               "酉"
                     *             ],
                     *             "star": "天乙贵人"
                     *           },
                     *           {
                     *             "branches": [
                     *               "巳"
                     *             ],
                     *             "star": "禄神"
                     *           },
                     *           {
                     *             "branches": [
                     *               "午"
                     *             ],
                     *             "star": "羊刃"
                     *           },
                     *           {
                     *             "branches": [
                     *               "申"
                     *             ],
                     *             "star": "文昌"
                     *           },
                     *           {
                     *             "branches": [
                     *               "寅"
                     *             ],
                     *             "star": "驿马"
                     *           },
                     *           {
                     *             "branches": [
                     *               "酉"
                     *             ],
                     *             "star": "桃花"
                     *           },
                     *           {
                     *             "branches": [
                     *               "子"
                     *             ],
                     *             "star": "将星"
                     *           },
                     *           {
                     *             "branches": [
                     *               "辰"
                     *             ],
                     *             "star": "华盖"
                     *           },
                     *           {
                     *             "branches": [
                     *               "巳"
                     *             ],
                     *             "star": "劫煞"
                     *           },
                     *           {
                     *             "branches": [
                     *               "亥"
                     *             ],
                     *             "star": "天医"
                     *           },
                     *           {
                     *             "branches": [
                     *               "未"
                     *             ],
                     *             "star": "天喜"
                     *           }
                     *         ]
                     *       },
                     *       "classic": {
                     *         "judgement": {
                     *           "simplified": "元亨，利贞。勿用有攸往，利建侯。",
                     *           "traditional": "元亨，利貞。勿用有攸往，利建侯。"
                     *         },
                     *         "lines": [
                     *           {
                     *             "simplified": "磐桓，利居贞，利建侯。",
                     *             "traditional": "磐桓，利居貞，利建侯。"
                     *           },
                     *           {
                     *             "simplified": "屯如邅如，乘马班如。匪寇婚媾。女子贞不字，十年乃字。",
                     *             "traditional": "屯如邅如，乘馬班如。匪寇婚媾。女子貞不字，十年乃字。"
                     *           },
                     *           {
                     *             "simplified": "即鹿无虞，惟入于林中。君子几不如舍，往吝。",
                     *             "traditional": "即鹿无虞，惟入于林中。君子幾不如舍，往吝。"
                     *           },
                     *           {
                     *             "simplified": "乘马班如，求婚媾。往吉，无不利。",
                     *             "traditional": "乘馬班如，求婚媾。往吉，无不利。"
                     *           },
                     *           {
                     *             "simplified": "屯其膏。小贞吉，大贞凶。",
                     *             "traditional": "屯其膏。小貞吉，大貞凶。"
                     *           },
                     *           {
                     *             "simplified": "乘马班如，泣血涟如。",
                     *             "traditional": "乘馬班如，泣血漣如。"
                     *           }
                     *         ],
                     *         "reading": {
                     *           "rule": "one_changing",
                     *           "texts": [
                     *             {
                     *               "hexagram": 3,
                     *               "isMain": true,
                     *               "label": "上六",
                     *               "part": "line",
                     *               "plain": "骑马徘徊，哭得血泪涟涟，困在尽头不是长久之计，该另寻出路。",
                     *               "position": 6,
                     *               "text": {
                     *                 "simplified": "乘马班如，泣血涟如。",
                     *                 "traditional": "乘馬班如，泣血漣如。"
                     *               }
                     *             }
                     *           ]
                     *         }
                     *       },
                     *       "createdAt": "2026-01-02T03:04:05.678Z",
                     *       "durationMs": 2,
                     *       "finishReason": "stop",
                     *       "model": "builtin-1",
                     *       "promptVersion": "2",
                     *       "provider": "builtin",
                     *       "rating": {
                     *         "helpful": true,
                     *         "note": "讲得很清楚。",
                     *         "ratedAt": "2026-01-02T03:05:06.789Z"
                     *       },
                     *       "result": "水雷屯：万事起头难……",
                     *       "status": "succeeded",
                     *       "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
                     *       "usage": {
                     *         "completionTokens": 420,
                     *         "promptTokens": 180
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["Interpretation"];
                    "text/event-stream": unknown;
                };
            };
        };
    };
    listInterpretationsByPhone: {
        parameters: {
            query?: {
                /** @description Page number. */
                page?: number;
                /** @description Records on a page. */
                size?: number;
            };
            header?: never;
            path: {
                /** @description The user's number; for users, their own. */
                phoneNumber: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "cost": "0.0042",
                     *           "createdAt": "2026-01-02T03:04:05.678Z",
                     *           "divinationData": null,
                     *           "durationMs": 2,
                     *           "errorClass": "timed_out",
                     *           "failover": "busy",
                     *           "finishReason": "stop",
                     *           "finishedAt": "2026-01-02T03:04:05.680Z",
                     *           "firstTokenMs": 1,
                     *           "model": "builtin-1",
                     *           "promptVersion": "2",
                     *           "provider": "builtin",
                     *           "question": "今年换工作合适吗？",
                     *           "questionType": "career",
                     *           "rating": {
                     *             "helpful": true,
                     *             "note": "讲得很清楚。",
                     *             "ratedAt": "2026-01-02T03:05:06.789Z"
                     *           },
                     *           "result": "水雷屯：万事起头难……",
                     *           "status": "succeeded",
                     *           "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
                     *           "usage": {
                     *             "completionTokens": 420,
                     *             "promptTokens": 180
                     *           },
                     *           "userId": "10001"
                     *         }
                     *       ],
                     *       "page": 1,
                     *       "size": 20,
                     *       "total": 1
                     *     }
                     */
                    "application/json": components["schemas"]["InterpretationRecordPage"];
                };
            };
        };
    };
    getInterpretation: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The trace id from the interpretation's response. */
                traceId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "cost": "0.0042",
                     *       "createdAt": "2026-01-02T03:04:05.678Z",
                     *       "divinationData": null,
                     *       "durationMs": 2,
                     *       "errorClass": "timed_out",
                     *       "failover": "busy",
                     *       "finishReason": "stop",
                     *       "finishedAt": "2026-01-02T03:04:05.680Z",
                     *       "firstTokenMs": 1,
                     *       "model": "builtin-1",
                     *       "promptVersion": "2",
                     *       "provider": "builtin",
                     *       "question": "今年换工作合适吗？",
                     *       "questionType": "career",
                     *       "rating": {
                     *         "helpful": true,
                     *         "note": "讲得很清楚。",
                     *         "ratedAt": "2026-01-02T03:05:06.789Z"
                     *       },
                     *       "result": "水雷屯：万事起头难……",
                     *       "status": "succeeded",
                     *       "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
                     *       "usage": {
                     *         "completionTokens": 420,
                     *         "promptTokens": 180
                     *       },
                     *       "userId": "10001"
                     *     }
                     */
                    "application/json": components["schemas"]["InterpretationRecord"];
                };
            };
        };
    };
    listInterpretations: {
        parameters: {
            query?: {
                /** @description Page number. */
                page?: number;
                /** @description Records on a page. */
                size?: number;
            };
            header?: never;
            path: {
                /** @description The user's id; for users, their own. */
                userId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "cost": "0.0042",
                     *           "createdAt": "2026-01-02T03:04:05.678Z",
                     *           "divinationData": null,
                     *           "durationMs": 2,
                     *           "errorClass": "timed_out",
                     *           "failover": "busy",
                     *           "finishReason": "stop",
                     *           "finishedAt": "2026-01-02T03:04:05.680Z",
                     *           "firstTokenMs": 1,
                     *           "model": "builtin-1",
                     *           "promptVersion": "2",
                     *           "provider": "builtin",
                     *           "question": "今年换工作合适吗？",
                     *           "questionType": "career",
                     *           "rating": {
                     *             "helpful": true,
                     *             "note": "讲得很清楚。",
                     *             "ratedAt": "2026-01-02T03:05:06.789Z"
                     *           },
                     *           "result": "水雷屯：万事起头难……",
                     *           "status": "succeeded",
                     *           "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
                     *           "usage": {
                     *             "completionTokens": 420,
                     *             "promptTokens": 180
                     *           },
                     *           "userId": "10001"
                     *         }
                     *       ],
                     *       "page": 1,
                     *       "size": 20,
                     *       "total": 1
                     *     }
                     */
                    "application/json": components["schemas"]["InterpretationRecordPage"];
                };
            };
        };
    };
    listInterpretationsBetween: {
        parameters: {
            query: {
                /** @description Calls that started before this time; a whole day is included. */
                endTime: string;
                /** @description Page number. */
                page?: number;
                /** @description Records on a page. */
                size?: number;
                /** @description Calls that started at this time or later. */
                startTime: string;
            };
            header?: never;
            path: {
                /** @description The user's id; for users, their own. */
                userId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "cost": "0.0042",
                     *           "createdAt": "2026-01-02T03:04:05.678Z",
                     *           "divinationData": null,
                     *           "durationMs": 2,
                     *           "errorClass": "timed_out",
                     *           "failover": "busy",
                     *           "finishReason": "stop",
                     *           "finishedAt": "2026-01-02T03:04:05.680Z",
                     *           "firstTokenMs": 1,
                     *           "model": "builtin-1",
                     *           "promptVersion": "2",
                     *           "provider": "builtin",
                     *           "question": "今年换工作合适吗？",
                     *           "questionType": "career",
                     *           "rating": {
                     *             "helpful": true,
                     *             "note": "讲得很清楚。",
                     *             "ratedAt": "2026-01-02T03:05:06.789Z"
                     *           },
                     *           "result": "水雷屯：万事起头难……",
                     *           "status": "succeeded",
                     *           "traceId": "4bf92f3577b34da6a3ce929d0e0e4736",
                     *           "usage": {
                     *             "completionTokens": 420,
                     *             "promptTokens": 180
                     *           },
                     *           "userId": "10001"
                     *         }
                     *       ],
                     *       "page": 1,
                     *       "size": 20,
                     *       "total": 1
                     *     }
                     */
                    "application/json": components["schemas"]["InterpretationRecordPage"];
                };
            };
        };
    };
    countInterpretations: {
        parameters: {
            query?: never;
            header?: never;
            path: {
                /** @description The user's id; for users, their own. */
                userId: string;
            };
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "count": 1
                     *     }
                     */
                    "application/json": components["schemas"]["RecordCount"];
                };
            };
        };
    };
    sendFeedback: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "content": "请加上小六壬。"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The feedback.
                     * @example 请加上小六壬。
                     */
                    content: string;
                    /**
                     * @description Phone number of the sender. With a token, must be the token's user's.
                     * @example 13800138000
                     */
                    phone_number?: string;
                    /**
                     * @description Id of the sender. With a token, must be the token's user.
                     * @example 10001
                     */
                    user_id?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "content": "请加上小六壬。",
                     *       "createdAt": "2026-01-02T03:04:05.678Z",
                     *       "id": "7",
                     *       "phone_number": "13800138000",
                     *       "user_id": "10001"
                     *     }
                     */
                    "application/json": components["schemas"]["FeedbackReceived"];
                };
            };
        };
    };
    getHealth: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "status": "ok"
                     *     }
                     */
                    "application/json": components["schemas"]["Health"];
                };
            };
        };
    };
    chat: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "messages": [
                 *         {
                 *           "content": "屯卦在说什么？",
                 *           "role": "user"
                 *         }
                 *       ]
                 *     }
                 */
                "application/json": {
                    /**
                     * @description From -2 to 2.
                     * @example 0.7
                     */
                    frequency_penalty?: number;
                    /**
                     * @description Maximum tokens of the response. The server has its own limit.
                     * @example 500
                     */
                    max_tokens?: number;
                    /** @description The conversation, oldest first: turns of `user` and `assistant`, the last one the user's. */
                    messages: {
                        content: string;
                        /** @enum {string} */
                        role: "user" | "assistant";
                    }[];
                    /**
                     * @description The caller's own number.
                     * @example 13800138000
                     */
                    phoneNumber?: string;
                    /**
                     * @description From -2 to 2.
                     * @example 0.7
                     */
                    presence_penalty?: number;
                    /**
                     * @description True for an event stream. Default: as `Accept` asks.
                     * @example true
                     */
                    stream?: boolean;
                    /**
                     * @description From 0 to 2.
                     * @example 0.7
                     */
                    temperature?: number;
                    /**
                     * @description From 0 to 1. Like both penalties, for models that take it.
                     * @example 0.7
                     */
                    top_p?: number;
                    /**
                     * @description The caller's own id.
                     * @example 10001
                     */
                    userId?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "choices": [
                     *         {
                     *           "finish_reason": "stop",
                     *           "index": 0,
                     *           "message": {
                     *             "content": "屯卦讲的是万事起头难。",
                     *             "role": "assistant"
                     *           }
                     *         }
                     *       ],
                     *       "created": 1767225600,
                     *       "id": "chatcmpl-4bf92f3577b34da6a3ce929d0e0e4736",
                     *       "model": "deepseek-chat",
                     *       "object": "chat.completion",
                     *       "usage": {
                     *         "completion_tokens": 420,
                     *         "prompt_tokens": 180,
                     *         "total_tokens": 600
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["ChatCompletion"];
                    "text/event-stream": unknown;
                };
            };
        };
    };
    listNotificationsV0: {
        parameters: {
            query?: {
                /** @description Number of the page. Without `page` and `size`, the newest 1000 notifications. Pages end there too. */
                page?: number;
                /** @description Notifications on a page. */
                size?: number;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "body": "更新后即可使用。",
                     *           "createdAt": "2026-01-02T03:04:05.678Z",
                     *           "expiresAt": "2026-02-02T03:04:05.678Z",
                     *           "id": "42",
                     *           "kind": "activity",
                     *           "payload": {
                     *             "params": {
                     *               "id": "7"
                     *             },
                     *             "route": "sessions/detail",
                     *             "type": "open_route"
                     *           },
                     *           "readAt": "2026-01-02T09:04:05.678Z",
                     *           "title": "六十四卦全新解读"
                     *         }
                     *       ],
                     *       "total": 1
                     *     }
                     */
                    "application/json": components["schemas"]["AllNotifications"];
                };
            };
        };
    };
    latestNotificationV0: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "notification": {
                     *         "body": "更新后即可使用。",
                     *         "createdAt": "2026-01-02T03:04:05.678Z",
                     *         "expiresAt": "2026-02-02T03:04:05.678Z",
                     *         "id": "42",
                     *         "kind": "activity",
                     *         "payload": {
                     *           "params": {
                     *             "id": "7"
                     *           },
                     *           "route": "sessions/detail",
                     *           "type": "open_route"
                     *         },
                     *         "readAt": "2026-01-02T09:04:05.678Z",
                     *         "title": "六十四卦全新解读"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["LatestNotification"];
                };
            };
        };
    };
    getStoreAccountTokenV0: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "accountToken": "7e3fb20b-4cdb-47cc-936d-99d65f608138",
                     *       "obfuscatedAccountId": "7e3fb20b4cdb47cc936d99d65f608138"
                     *     }
                     */
                    "application/json": components["schemas"]["AccountToken"];
                };
            };
        };
    };
    createOrderByGetV0: {
        parameters: {
            query: {
                /** @description The price in yuan. With `coinCount`, a pair of the price list. */
                amount: string;
                /** @description The channel of the payment. By default the first of `payment.channels`. */
                channel?: components["schemas"]["PaymentChannel"];
                /** @description The program in which the buyer pays, for WeChat Pay: `app` by default. */
                client?: components["schemas"]["PayerClient"];
                /** @description The coins that it buys. */
                coinCount: number;
                /** @description The buyer's id in WeChat, for `jsapi`. */
                openId?: string;
                /** @description The caller's own id. */
                userId?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "amount": "6.00",
                     *       "channel": "alipay",
                     *       "coinCount": 60,
                     *       "currency": "CNY",
                     *       "expiresAt": "2026-01-02T03:34:05.678Z",
                     *       "orderNo": "202601020123456789012345",
                     *       "orderString": "method=alipay.trade.app.pay&app_id=sandbox&charset=utf-8&…",
                     *       "payment": {
                     *         "url": "https://checkout.stripe.com/c/pay/cs_1"
                     *       },
                     *       "status": "credited",
                     *       "tradeNo": null,
                     *       "userId": "10001"
                     *     }
                     */
                    "application/json": components["schemas"]["PaymentOrder"];
                };
            };
        };
    };
    createOrderV0: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "amount": "6.00",
                 *       "coinCount": 60
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The price in yuan. With `coinCount`, a pair of the price list.
                     * @example 6.00
                     */
                    amount: string;
                    /**
                     * @description The channel of the payment. By default the first of `payment.channels`.
                     * @example sandbox
                     */
                    channel?: components["schemas"]["PaymentChannel"];
                    /**
                     * @description The program in which the buyer pays, for WeChat Pay: `app` by default.
                     * @example app
                     */
                    client?: components["schemas"]["PayerClient"];
                    /**
                     * @description The coins that it buys.
                     * @example 60
                     */
                    coinCount: number;
                    /**
                     * @description The buyer's id in WeChat, for `jsapi`.
                     * @example oUpF8uMuAJO_M2pxb1Q9zNjWeS6o
                     */
                    openId?: string;
                    /**
                     * @description The caller's own id.
                     * @example 10001
                     */
                    userId?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "amount": "6.00",
                     *       "channel": "alipay",
                     *       "coinCount": 60,
                     *       "currency": "CNY",
                     *       "expiresAt": "2026-01-02T03:34:05.678Z",
                     *       "orderNo": "202601020123456789012345",
                     *       "orderString": "method=alipay.trade.app.pay&app_id=sandbox&charset=utf-8&…",
                     *       "payment": {
                     *         "url": "https://checkout.stripe.com/c/pay/cs_1"
                     *       },
                     *       "status": "credited",
                     *       "tradeNo": null,
                     *       "userId": "10001"
                     *     }
                     */
                    "application/json": components["schemas"]["PaymentOrder"];
                };
            };
        };
    };
    listOrdersV0: {
        parameters: {
            query?: {
                /** @description Page number. */
                page?: number;
                /** @description Orders on a page. */
                size?: number;
                /** @description The caller's own id. */
                userId?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "amount": "6.00",
                     *           "asset": "coin",
                     *           "bonus": 0,
                     *           "channel": "alipay",
                     *           "closedAt": "2026-01-03T04:04:05.678Z",
                     *           "coinCount": 600,
                     *           "count": 600,
                     *           "createdAt": "2026-01-02T03:04:05.678Z",
                     *           "creditedAt": "2026-01-02T03:05:06.678Z",
                     *           "currency": "CNY",
                     *           "expiresAt": "2026-01-02T03:34:05.678Z",
                     *           "orderNo": "202601020123456789012345",
                     *           "paid": "6.00",
                     *           "paidAt": "2026-01-02T03:05:05.678Z",
                     *           "productId": "points_600",
                     *           "refunded": "0.00",
                     *           "refundedAt": "2026-01-04T03:04:05.678Z",
                     *           "returned": 0,
                     *           "status": "credited",
                     *           "subject": "600 points",
                     *           "tradeNo": "2026010222001400000000000001",
                     *           "userId": "10001"
                     *         }
                     *       ],
                     *       "page": 1,
                     *       "size": 20,
                     *       "total": 1
                     *     }
                     */
                    "application/json": components["schemas"]["OrderPage"];
                };
            };
        };
    };
    listProductsV0: {
        parameters: {
            query?: {
                /** @description Only products that bring this. */
                asset?: components["schemas"]["Asset"];
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "items": [
                     *         {
                     *           "appleId": null,
                     *           "asset": "coin",
                     *           "bonus": 0,
                     *           "channels": [
                     *             {
                     *               "channel": "alipay",
                     *               "currency": "CNY",
                     *               "price": "6.00"
                     *             }
                     *           ],
                     *           "count": 600,
                     *           "currency": "CNY",
                     *           "description": null,
                     *           "firstBonus": 0,
                     *           "googleId": null,
                     *           "id": "points_600",
                     *           "price": "6.00",
                     *           "subject": "600 points"
                     *         }
                     *       ],
                     *       "pointsPerCoin": 0,
                     *       "prices": {
                     *         "anotherInterpretation": {
                     *           "asset": "coin",
                     *           "count": 10
                     *         },
                     *         "casting": {
                     *           "asset": "coin",
                     *           "count": 10
                     *         },
                     *         "use": {
                     *           "asset": "coin",
                     *           "count": 10
                     *         }
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["ProductList"];
                };
            };
        };
    };
    reportApplePurchaseV0: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "signedTransaction": "eyJhbGciOiJFUzI1NiIsIng1YyI6W10fQ.eyJ0cmFuc2FjdGlvbklkIjoiMSJ9.c2lnbmF0dXJl"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The user's consent that Apple is told how much of a purchase was used, when a refund is asked for. Absent: unchanged.
                     * @example true
                     */
                    sharesConsumption?: boolean;
                    /**
                     * @description The `jwsRepresentation` of the StoreKit 2 transaction.
                     * @example eyJhbGciOiJFUzI1NiIsIng1YyI6W10fQ.eyJ0cmFuc2FjdGlvbklkIjoiMSJ9.c2lnbmF0dXJl
                     */
                    signedTransaction: string;
                    /**
                     * @description The caller's own id.
                     * @example 10001
                     */
                    userId?: string;
                };
            };
        };
        responses: {
            /** @description The purchase is credited. Finish it in the app. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "balance": 60,
                     *       "purchase": {
                     *         "asset": "coin",
                     *         "bonus": 0,
                     *         "count": 60,
                     *         "creditedAt": "2026-01-02T03:04:06.678Z",
                     *         "environment": "production",
                     *         "id": "17",
                     *         "productId": "coins_60",
                     *         "purchasedAt": "2026-01-02T03:04:05.678Z",
                     *         "quantity": 1,
                     *         "returned": 0,
                     *         "revokedAt": "2026-01-04T03:04:05.678Z",
                     *         "status": "credited",
                     *         "store": "apple",
                     *         "storeNumber": "2000000800000001",
                     *         "storeProductId": "com.example.app.coins60"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["ReportedPurchase"];
                };
            };
            /** @description The buyer has not paid yet. It is credited later. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "balance": 60,
                     *       "purchase": {
                     *         "asset": "coin",
                     *         "bonus": 0,
                     *         "count": 60,
                     *         "creditedAt": "2026-01-02T03:04:06.678Z",
                     *         "environment": "production",
                     *         "id": "17",
                     *         "productId": "coins_60",
                     *         "purchasedAt": "2026-01-02T03:04:05.678Z",
                     *         "quantity": 1,
                     *         "returned": 0,
                     *         "revokedAt": "2026-01-04T03:04:05.678Z",
                     *         "status": "credited",
                     *         "store": "apple",
                     *         "storeNumber": "2000000800000001",
                     *         "storeProductId": "com.example.app.coins60"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["ReportedPurchase"];
                };
            };
        };
    };
    reportGooglePurchaseV0: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "productId": "com.example.coins60",
                 *       "purchaseToken": "abcdefghijklmnop.AO-J1Oz_example"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The product id at Google Play.
                     * @example com.example.coins60
                     */
                    productId: string;
                    /**
                     * @description The purchase token.
                     * @example abcdefghijklmnop.AO-J1Oz_example
                     */
                    purchaseToken: string;
                    /**
                     * @description The caller's own id.
                     * @example 10001
                     */
                    userId?: string;
                };
            };
        };
        responses: {
            /** @description The purchase is credited. Finish it in the app. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "balance": 60,
                     *       "purchase": {
                     *         "asset": "coin",
                     *         "bonus": 0,
                     *         "count": 60,
                     *         "creditedAt": "2026-01-02T03:04:06.678Z",
                     *         "environment": "production",
                     *         "id": "17",
                     *         "productId": "coins_60",
                     *         "purchasedAt": "2026-01-02T03:04:05.678Z",
                     *         "quantity": 1,
                     *         "returned": 0,
                     *         "revokedAt": "2026-01-04T03:04:05.678Z",
                     *         "status": "credited",
                     *         "store": "apple",
                     *         "storeNumber": "2000000800000001",
                     *         "storeProductId": "com.example.app.coins60"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["ReportedPurchase"];
                };
            };
            /** @description The buyer has not paid yet. It is credited later. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "balance": 60,
                     *       "purchase": {
                     *         "asset": "coin",
                     *         "bonus": 0,
                     *         "count": 60,
                     *         "creditedAt": "2026-01-02T03:04:06.678Z",
                     *         "environment": "production",
                     *         "id": "17",
                     *         "productId": "coins_60",
                     *         "purchasedAt": "2026-01-02T03:04:05.678Z",
                     *         "quantity": 1,
                     *         "returned": 0,
                     *         "revokedAt": "2026-01-04T03:04:05.678Z",
                     *         "status": "credited",
                     *         "store": "apple",
                     *         "storeNumber": "2000000800000001",
                     *         "storeProductId": "com.example.app.coins60"
                     *       }
                     *     }
                     */
                    "application/json": components["schemas"]["ReportedPurchase"];
                };
            };
        };
    };
    confirmPayment: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "orderNo": "202601020123456789012345"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The price in yuan. Must equal that of the order.
                     * @example 6.00
                     */
                    amount?: string;
                    /**
                     * @description The number of coins. Must equal that of the order.
                     * @example 60
                     */
                    coinCount?: number;
                    /**
                     * @description The order.
                     * @example 202601020123456789012345
                     */
                    orderNo: string;
                    /**
                     * @description The reason. Required for administrators.
                     * @example compensation for a failed cast
                     */
                    reason?: string;
                    /**
                     * @description The status the app has seen. The provider is asked regardless.
                     * @example career
                     */
                    status?: string;
                    /**
                     * @description The provider's trade number. Before the credit it must equal that of the order.
                     * @example 202601020123456789012345
                     */
                    tradeNo?: string;
                    /**
                     * @description The caller's own id.
                     * @example 10001
                     */
                    userId?: string;
                };
            };
        };
        responses: {
            /** @description State of the order. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "balance": 60,
                     *       "coinCount": 60,
                     *       "orderNo": "202601020123456789012345",
                     *       "status": "credited",
                     *       "tradeNo": "2026010222001400000000000001",
                     *       "userId": "10001"
                     *     }
                     */
                    "application/json": components["schemas"]["PaymentStatus"];
                };
            };
            /** @description The order is not paid yet, or the provider is unavailable; a later check follows. */
            202: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "balance": 60,
                     *       "coinCount": 60,
                     *       "orderNo": "202601020123456789012345",
                     *       "status": "credited",
                     *       "tradeNo": "2026010222001400000000000001",
                     *       "userId": "10001"
                     *     }
                     */
                    "application/json": components["schemas"]["PaymentStatus"];
                };
            };
        };
    };
    getReadiness: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "accountsSuspended": 0,
                     *       "backupAt": "2026-01-02T03:04:05.678Z",
                     *       "backups": "current",
                     *       "database": "sound",
                     *       "databaseCheckedAt": "2026-01-02T03:04:05.678Z",
                     *       "disk": "ok",
                     *       "ledger": "consistent",
                     *       "ledgerVerifiedAt": "2026-01-02T03:04:05.678Z",
                     *       "providersDown": [],
                     *       "status": "ready",
                     *       "writesWaiting": 0,
                     *       "writesWaitingAtMost": 4096
                     *     }
                     */
                    "application/json": components["schemas"]["Readiness"];
                };
            };
        };
    };
    updateNickname: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "nickname": "青山"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description Alias of `userId`.
                     * @example 10001
                     */
                    id?: string;
                    /**
                     * @description The new nickname. Screened.
                     * @example 青山
                     */
                    nickname: string;
                    /**
                     * @description The caller's own id.
                     * @example 10001
                     */
                    userId?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "birthday": "1990-05-17",
                     *       "gender": "female",
                     *       "id": "10001",
                     *       "nickname": "青山",
                     *       "signature": "心静则明",
                     *       "userId": "10001"
                     *     }
                     */
                    "application/json": components["schemas"]["Profile"];
                };
            };
        };
    };
    getProfile: {
        parameters: {
            query?: {
                /** @description The caller's own id. */
                id?: string;
                /** @description Alias of `id`. */
                userId?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "birthday": "1990-05-17",
                     *       "gender": "female",
                     *       "id": "10001",
                     *       "nickname": "青山",
                     *       "signature": "心静则明",
                     *       "userId": "10001"
                     *     }
                     */
                    "application/json": components["schemas"]["Profile"];
                };
            };
        };
    };
    updateProfile: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "birthday": "1990-05-17",
                 *       "gender": "female",
                 *       "id": "10001",
                 *       "nickname": "青山",
                 *       "signature": "心静则明",
                 *       "userId": "10001"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description Date from 1900-01-01 to today. An empty text deletes it.
                     * @example 1990-05-17
                     */
                    birthday?: string;
                    /**
                     * @description `unknown`, `male`, `female` or `other`; also 0, 1, 2, 9, 未知, 男, 女, 其他, M, F.
                     * @example female
                     */
                    gender?: components["schemas"]["Gender"];
                    /**
                     * @description The caller's own id.
                     * @example 10001
                     */
                    id?: string;
                    /**
                     * @description Moderated. Unchanged if absent.
                     * @example 青山
                     */
                    nickname?: string;
                    /**
                     * @description Moderated. Unchanged if absent.
                     * @example 心静则明
                     */
                    signature?: string;
                    /**
                     * @description Alias of `id`.
                     * @example 10001
                     */
                    userId?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "birthday": "1990-05-17",
                     *       "gender": "female",
                     *       "id": "10001",
                     *       "nickname": "青山",
                     *       "signature": "心静则明",
                     *       "userId": "10001"
                     *     }
                     */
                    "application/json": components["schemas"]["Profile"];
                };
            };
        };
    };
    updateSignature: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody: {
            content: {
                /**
                 * @example {
                 *       "signature": "心静则明"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description Alias of `userId`.
                     * @example 10001
                     */
                    id?: string;
                    /**
                     * @description The new signature. Screened.
                     * @example 心静则明
                     */
                    signature: string;
                    /**
                     * @description The caller's own id.
                     * @example 10001
                     */
                    userId?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "birthday": "1990-05-17",
                     *       "gender": "female",
                     *       "id": "10001",
                     *       "nickname": "青山",
                     *       "signature": "心静则明",
                     *       "userId": "10001"
                     *     }
                     */
                    "application/json": components["schemas"]["Profile"];
                };
            };
        };
    };
    checkVersion: {
        parameters: {
            query?: never;
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: {
            content: {
                /**
                 * @example {
                 *       "clientVersion": "2.3.1",
                 *       "clientVersionCode": 231,
                 *       "platform": "android"
                 *     }
                 */
                "application/json": {
                    /**
                     * @description The client's version, such as `2.3.1`.
                     * @example 2.3.1
                     */
                    clientVersion?: string;
                    /**
                     * @description Build number of the client. Takes precedence over `clientVersion`.
                     * @example 231
                     */
                    clientVersionCode?: number;
                    /**
                     * @description Platform of the client. Without it, releases for any platform count.
                     * @example android
                     */
                    platform?: string;
                };
            };
        };
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "latest": {
                     *         "downloadUrl": "https://app.example.com/download",
                     *         "id": "3",
                     *         "isRequired": false,
                     *         "notes": "修复若干问题。",
                     *         "platform": "android",
                     *         "publishedAt": "2026-01-02T03:04:05.678Z",
                     *         "version": "2.3.1",
                     *         "versionCode": 231
                     *       },
                     *       "updateAvailable": true,
                     *       "updateRequired": false
                     *     }
                     */
                    "application/json": components["schemas"]["UpdateAdvice"];
                };
            };
        };
    };
    latestVersion: {
        parameters: {
            query?: {
                /** @description Platform of the client. Without it, releases for any platform count. */
                platform?: string;
            };
            header?: never;
            path?: never;
            cookie?: never;
        };
        requestBody?: never;
        responses: {
            /** @description Done. */
            200: {
                headers: {
                    [name: string]: unknown;
                };
                content: {
                    /**
                     * @example {
                     *       "downloadUrl": "https://app.example.com/download",
                     *       "id": "3",
                     *       "isRequired": false,
                     *       "notes": "修复若干问题。",
                     *       "platform": "android",
                     *       "publishedAt": "2026-01-02T03:04:05.678Z",
                     *       "version": "2.3.1",
                     *       "versionCode": 231
                     *     }
                     */
                    "application/json": components["schemas"]["AppRelease"];
                };
            };
        };
    };
}
