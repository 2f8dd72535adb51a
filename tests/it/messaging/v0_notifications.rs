//! `/notifications` of the first API generation: access. The inbox tests cover its contents.

use crate::support::Setup;

#[test]
fn needs_no_token_and_ignores_a_bad_one() {
    let server = Setup::default().start();
    let user = server.sign_in("13800138000");
    let key = server.api_key("tests");
    for path in ["/notifications/latest", "/notifications/all"] {
        server.get(path).send().expect(200);
        server.get(path).by(&user).send().expect(200);
        server.get(path).token(&key).send().expect(200);
        server.get(path).token("nonsense").send().expect(200);
    }
}
