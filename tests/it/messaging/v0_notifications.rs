//! `/notifications`: who may see it. What is in it is told with the inbox of the current generation.

use crate::support::Setup;

#[test]
fn everybody_may_ask_and_a_bad_token_is_refused() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let key = server.api_key("tests");
    for path in ["/notifications/latest", "/notifications/all"] {
        server.get(path).send().expect(200);
        server.get(path).by(&user).send().expect(200);
        server.get(path).token(&key).send().expect(200);
        server.get(path).token("nonsense").send().expect_problem(401, "unauthenticated");
    }
}
