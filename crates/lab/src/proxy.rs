//! Proxies of a trial. They start after the server, the one next to it first, and stop before it.

use std::cell::Cell;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path;

use study::node_messages::Serve;
use study::plan::{Level, Plan};
use study::process_plan::ProxyPlan;
use study::record::{FailureKind, ProxyUse};
use study::{Calls, Warning, WarningKind};

use crate::ports_and_readiness;
use crate::proxy_tcp_byte_counts::{self, Table};
use crate::size_limited_reads::read_text;
use crate::start_server::{Fill, Ground, Server, Started};
use crate::trial_end_reason::{End, failed};

const TEMPLATE_MAX_BYTES: u64 = 1024 * 1024;
const CALLS_MAX_BYTES: u64 = 64 * 1024 * 1024;

pub(crate) struct Proxy<'a> {
    plan: &'a ProxyPlan,
    pub(crate) started: Started,
    /// Port of the next process on the way to the server.
    next_port: u16,
    pub(crate) admin_port: Option<u16>,
    /// Directory of the proxy's files. It is declared after the process, so that it is removed later.
    folder: tempfile::TempDir,
}

/// Starts the proxies and returns them, the proxy next to the generator first. Fills `known` even on failure.
pub(crate) fn start<'a>(
    order: &'a Serve,
    ground: &Ground<'_>,
    (subject_port, second_port): (u16, u16),
    known: &mut Vec<ProxyUse>,
) -> Result<Vec<Proxy<'a>>, End> {
    let plans = &order.point.proxies;
    *known = vec![ProxyUse::default(); plans.len()];
    let (mut proxies, mut left, mut next_port) = (Vec::new(), order.proxy_cpus.as_slice(), subject_port);
    // The proxy next to the server starts first, so that each one finds the next one listening.
    for ((nth, plan), used) in plans.iter().enumerate().zip(known).rev() {
        let own = left.split_off(..plan.cpus as usize).unwrap_or_default();
        used.shares_cpus = plan.cpus == 0;
        let cpus = if used.shares_cpus { &order.cpus } else { own };
        let address = if nth == 0 { order.address } else { IpAddr::V4(Ipv4Addr::LOCALHOST) };
        let who = format!("proxy `{}`: ", plan.name);
        let broken = |text: String| failed(FailureKind::Proxy, format!("{who}{text}"));
        used.name.clone_from(&plan.name);
        used.used.cpus = cpus.to_vec();
        let folder = tempfile::Builder::new().prefix("quintain-proxy-").tempdir();
        let folder = folder.map_err(|error| broken(format!("cannot create its directory: {error}")))?;
        let free_port = || ports_and_readiness::free_port().map_err(|error| broken(format!("no free port: {error}")));
        let (admin_port, peer_port, second_peer_port) = (free_port()?, free_port()?, free_port()?);
        let has_admin = Cell::new(false);
        let names = |name: &str| match name {
            "admin_port" => {
                has_admin.set(true);
                Some(admin_port.to_string())
            }
            "peer_port" => Some(peer_port.to_string()),
            "second_peer_port" => Some(second_peer_port.to_string()),
            "folder" => Some(folder.path().display().to_string()),
            "next_port" => Some(next_port.to_string()),
            "subject_port" => Some(subject_port.to_string()),
            "second_port" => Some(second_port.to_string()),
            factor => order.point.factors.get(factor).map(Level::to_string),
        };
        let write_files = |fill: Fill<'_>| {
            plan.files.iter().try_for_each(|(name, template)| {
                let (text, path) = (template_text(&ground.directory.join(template))?, folder.path().join(name));
                fs::write(&path, fill(&text)).map_err(|error| format!("cannot write `{}`: {error}", path.display()))
            })
        };
        let (names, prepare, kind, who) = (&names, &write_files, FailureKind::Proxy, &who);
        let server = Server { names, prepare, cpus, address, kind, who, ..Server::new(&plan.process, ground) };
        let started = server.start(&mut used.used)?;
        used.ready_ns = Some(started.ready_ns);
        let (port, admin_port) = (started.port, has_admin.get().then_some(admin_port));
        proxies.push(Proxy { plan, started, next_port, admin_port, folder });
        next_port = port;
    }
    proxies.reverse();
    Ok(proxies)
}

impl Proxy<'_> {
    /// Stops the proxy and fills `used`. `tables` has pairs of earlier and later connection tables, best pair first.
    pub(crate) fn finish(mut self, tables: &[(&Table, &Table)], used: &mut ProxyUse) -> Vec<Warning> {
        let mut warnings = self.started.stop(&mut used.used).into_iter().collect::<Vec<_>>();
        let (own, next) = (self.started.port, self.next_port);
        used.wire = tables.iter().find_map(|(begin, end)| proxy_tcp_byte_counts::between(begin, end, own, next));
        if let Some(file) = &self.plan.calls {
            let text = read_text(&self.folder.path().join(file), CALLS_MAX_BYTES).map_err(|error| error.to_string());
            let calls = text.and_then(|text| Calls::parse(&text)).map_err(|why| {
                let text = format!("proxy `{}`: calls file `{file}`: {why}", self.plan.name);
                warnings.push(WarningKind::NotRead.says(text));
            });
            used.calls = calls.ok().map(Box::new);
        }
        warnings
    }
}

fn template_text(path: &Path) -> Result<String, String> {
    read_text(path, TEMPLATE_MAX_BYTES).map_err(|error| format!("the file `{}`: {error}", path.display()))
}

pub(crate) fn missing_files(plan: &Plan, directory: &Path) -> Vec<String> {
    let files = plan.points.iter().flat_map(|point| &point.proxies).flat_map(|proxy| proxy.files.values());
    files.filter_map(|file| template_text(&directory.join(file)).err()).collect()
}
