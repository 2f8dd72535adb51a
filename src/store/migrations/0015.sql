-- The balance of coins, read together with the token.

-- Owner: tokens. The same with the user's coins.
create view bearer_coins as
    select tokens.token_sha256, tokens.user_id, tokens.expires_at, tokens.replaced_at, tokens.family_expires_at,
        tokens.last_used_at, users.phone_number, users.email, users.created_at, coalesce(balances.balance, 0) as coins
    from tokens join users on users.id = tokens.user_id
        left join balances on balances.user_id = tokens.user_id and balances.asset = 'coin';
