//! Proxies of a trial. They start after the server, its neighbor first, and stop before it.

use std::cell::Cell;
use std::collections::BTreeMap;
use std::fs;
use std::net::IpAddr;
use std::path::Path;
use std::time::{Duration, Instant};

use study::plan::{Level, Plan};
use study::proxy::ProxyPlan;
use study::record::{Failure, FailureKind, ProxyUse};
use study::{Calls, Warning, WarningKind};

use crate::end::{End, failed};
use crate::files::read_limited;
use crate::ready;
use crate::sample::{Reading, Sampler};
use crate::server::{self, Fill, Ground, Server, Started};
use crate::wire::{self, Table};

const TEMPLATE_MAX_BYTES: u64 = 1024 * 1024;
const CALLS_MAX_BYTES: u64 = 64 * 1024 * 1024;

pub(crate) struct Proxy<'a> {
    plan: &'a ProxyPlan,
    pub(crate) started: Started,
    pub(crate) sampler: Sampler,
    pub(crate) port: u16,
    next_port: u16,
    pub(crate) admin_port: Option<u16>,
    /// Removed after the process has ended: fields are dropped in this order.
    folder: tempfile::TempDir,
}

pub(crate) struct ProxyContext<'a> {
    pub(crate) ground: Ground<'a>,
    pub(crate) levels: &'a BTreeMap<String, Level>,
    pub(crate) cpus: &'a [u32],
    pub(crate) address: IpAddr,
    /// Port of the next process towards the server.
    pub(crate) next_port: u16,
    pub(crate) subject_port: u16,
    pub(crate) second_port: u16,
}

impl<'a> Proxy<'a> {
    pub(crate) fn start(plan: &'a ProxyPlan, place: &ProxyContext<'_>, used: &mut ProxyUse) -> Result<Self, End> {
        let who = format!("proxy `{}`: ", plan.name);
        let broken = |text: String| failed(FailureKind::Proxy, format!("{who}{text}"));
        used.name.clone_from(&plan.name);
        used.used.cpus = place.cpus.to_vec();
        used.shares_cpus = plan.cpus == 0;
        let folder = tempfile::Builder::new().prefix("quintain-proxy-").tempdir();
        let folder = folder.map_err(|error| broken(format!("cannot create its directory: {error}")))?;
        let free_port = || ready::free_port().map_err(|error| broken(format!("no free port: {error}")));
        let (admin_port, peer_port, second_peer_port) = (free_port()?, free_port()?, free_port()?);
        let has_admin = Cell::new(false);
        let names = |name: &str| match name {
            "next_port" => Some(place.next_port.to_string()),
            "subject_port" => Some(place.subject_port.to_string()),
            "second_port" => Some(place.second_port.to_string()),
            "admin_port" => {
                has_admin.set(true);
                Some(admin_port.to_string())
            }
            "peer_port" => Some(peer_port.to_string()),
            "second_peer_port" => Some(second_peer_port.to_string()),
            "folder" => Some(folder.path().display().to_string()),
            factor => place.levels.get(factor).map(Level::to_string),
        };
        let write_files = |fill: Fill<'_>| -> Result<(), String> {
            for (name, template) in &plan.files {
                let text = template_text(&place.ground.directory.join(template))?;
                let path = folder.path().join(name);
                fs::write(&path, fill(&text)).map_err(|error| format!("cannot write `{}`: {error}", path.display()))?;
            }
            Ok(())
        };
        let server = Server {
            ground: place.ground,
            command: &plan.command,
            container: None,
            environment: &plan.environment,
            names: &names,
            prepare: &write_files,
            directory: plan.directory.as_deref(),
            cpus: place.cpus,
            address: place.address,
            port: plan.port,
            ready_timeout_ns: plan.ready_timeout_ns,
            stop_timeout_ns: plan.stop_timeout_ns,
            kind: FailureKind::Proxy,
            who: &who,
        };
        let started = server.start(&mut used.used)?;
        used.ready_ns = Some(started.ready_ns);
        let port = used.used.port.unwrap_or(0);
        let sampler = Sampler::new(Path::new("/proc"), started.child.pid(), started.at, place.cpus);
        let admin_port = has_admin.get().then_some(admin_port);
        Ok(Self { plan, started, sampler, port, next_port: place.next_port, admin_port, folder })
    }

    pub(crate) fn ended(&mut self) -> Option<Failure> {
        let exit = self.started.child.wait(Duration::ZERO)?;
        let message = format!("proxy `{}`: {}", self.plan.name, self.started.child.exited(exit, "under load"));
        Some(Failure { kind: FailureKind::Proxy, message })
    }

    pub(crate) fn finish(
        mut self,
        readings: Option<(Reading, Reading)>,
        span: Option<(Instant, Instant)>,
        tables: &[(&Table, &Table)],
        used: &mut ProxyUse,
    ) -> Vec<Warning> {
        let who = format!("proxy `{}`: ", self.plan.name);
        let stopped = server::stop(&mut self.started.child, self.plan.stop_timeout_ns, &who, &mut used.used);
        let mut warnings = stopped.into_iter().collect::<Vec<_>>();
        used.wire = tables.iter().find_map(|(begin, end)| wire::between(begin, end, self.port, self.next_port));
        self.sampler.finish(readings, span, &mut used.used);
        match self.plan.calls.as_ref().map(|file| (file, calls(&self.folder.path().join(file)))) {
            None => {}
            Some((_, Ok(calls))) => used.calls = Some(Box::new(calls)),
            Some((file, Err(text))) => {
                let text = format!("{who}calls file `{file}`: {text}");
                warnings.push(WarningKind::NotRead.says(text));
            }
        }
        warnings
    }
}

fn calls(path: &Path) -> Result<Calls, String> {
    let bytes = read_limited(path, CALLS_MAX_BYTES).map_err(|error| error.to_string())?;
    Calls::parse(std::str::from_utf8(&bytes).map_err(|error| error.to_string())?)
}

fn template_text(path: &Path) -> Result<String, String> {
    let text = read_limited(path, TEMPLATE_MAX_BYTES);
    let text = text.and_then(|bytes| String::from_utf8(bytes).map_err(std::io::Error::other));
    text.map_err(|error| format!("the file `{}`: {error}", path.display()))
}

pub(crate) fn missing_files(plan: &Plan, directory: &Path) -> Vec<String> {
    let proxies = plan.points.iter().flat_map(|point| &point.proxies);
    proxies
        .flat_map(|proxy| proxy.files.values())
        .filter_map(|file| template_text(&directory.join(file)).err())
        .collect()
}
