//! Cases for HTTP servers that one client's conversation cannot express (subjects/REQUIREMENTS.md, "HTTP").

use std::time::Duration;

use super::check_definition::{Check, code};
use super::server_under_test::Server;
use super::unsuccessful_check_reason::Trouble;

pub(super) fn checks() -> Vec<Check> {
    vec![
        code("slow-reader", "a slow reader neither blocks other clients nor loses data", slow_reader),
        code(
            "two-clients",
            "two clients whose requests arrive in alternating pieces both get their responses",
            two_clients,
        ),
    ]
}

fn slow_reader(server: &mut Server<'_>) -> Result<(), Trouble> {
    /// Total size of responses, in bytes, large enough to fill the buffers on both sides of a connection.
    const ENOUGH: usize = 12 << 20;
    let mut slow = server.connect()?;
    // Large responses fill the buffers with few requests. A server may finish small ones before it blocks.
    let mut page = server.page("/bytes/65536")?;
    if page.status != 200 {
        page = server.page(&server.path)?;
    }
    let request = page.request();
    slow.send(&request)?;
    let first = slow.response(false)?;
    page.check(&first, false)?;
    let count = ENOUGH / (first.head_bytes + first.body.len());
    let sent = server.fill(&mut slow, &request.repeat(count))?;
    let whole = sent / request.len();
    for index in 0..whole {
        let at_once = |trouble: Trouble| trouble.at(&format!("request {} of {whole} sent at once: ", index + 1));
        let response = slow.response(false).map_err(|why| at_once(why.into()))?;
        page.check(&response, false).map_err(|miss| at_once(miss.into()))?;
        if slow.has_ended_keep_alive() {
            break; // the server answers no further request on this connection
        }
    }
    Ok(())
}

fn two_clients(server: &mut Server<'_>) -> Result<(), Trouble> {
    let page = server.page(&server.path)?;
    for _ in 0..20 {
        let (mut one, mut two) = (server.connect()?, server.connect()?);
        let (first, second) = (page.request(), page.request());
        one.send(&first[..7])?;
        two.send(&second[..17])?;
        std::thread::sleep(Duration::from_millis(1)); // so that the pieces arrive separately
        two.send(&second[17..])?;
        two.expect_page(&page).map_err(|why| format!("beside a client that has only begun: {why}"))?;
        one.send(&first[7..])?;
        one.expect_page(&page)?;
        two.send(&second)?;
        one.send(&first)?;
        one.expect_page(&page)?;
        two.expect_page(&page)?;
    }
    Ok(())
}
