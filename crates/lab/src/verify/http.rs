//! What servers of HTTP promise that no conversation of one client expresses: subjects/REQUIREMENTS.md, "HTTP".

use std::thread;
use std::time::Duration;

use super::check::Check;
use super::page::request;
use super::server::Server;
use super::slow;
use super::trouble::Trouble;

pub(super) fn checks() -> Vec<Check> {
    vec![
        Check::code("slow-reader", "a slow reader neither blocks other clients nor loses data", slow_reader),
        Check::code(
            "two-clients",
            "two clients whose requests arrive in alternate pieces are both answered",
            two_clients,
        ),
    ]
}

fn slow_reader(server: &mut Server<'_>) -> Result<(), Trouble> {
    /// More than the buffers of both sides of a connection hold of answers, bytes.
    const ENOUGH: usize = 12 << 20;
    let mut slow = server.connect()?;
    // Long answers fill them with few requests. A server without such answers may be done before it is stuck: a weaker case.
    let mut request = request("GET", "/bytes/65536", "");
    slow.send(&request)?;
    let mut model = slow.response(false)?;
    if model.status != 200 {
        request = server.page(&server.path)?.request();
        slow.send(&request)?;
        model = slow.response(false)?;
    }
    let count = ENOUGH / (model.head_bytes + model.body.len());
    let sent = slow::fill(server, &mut slow, &request.repeat(count))?;
    let whole = sent / request.len();
    for index in 0..whole {
        let place = || format!("request {} of {whole} that were sent at once", index + 1);
        let response = slow.response(false).map_err(|why| format!("{}: {why}", place()))?;
        if (response.status, &response.body) != (model.status, &model.body) {
            return Err(format!("{}: the answer is another than to the first", place()).into());
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
        thread::sleep(Duration::from_millis(1)); // so that the pieces arrive alone
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
