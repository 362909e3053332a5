//! placeholder
use study::record::Role;
/// x
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// x
    pub launcher: Launcher,
    /// x
    pub deploy: bool,
    /// x
    pub hosts: Vec<HostPlan>,
}
/// x
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Launcher {
    /// x
    Auto,
    /// x
    Mpirun,
    /// x
    Ssh,
    /// x
    Local,
}
/// x
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPlan {
    /// x
    pub name: String,
    /// x
    pub address: String,
    /// x
    pub role: Role,
    /// x
    pub cpus: Option<Vec<u32>>,
    /// x
    pub quintain: Option<String>,
    /// x
    pub directory: Option<String>,
    /// x
    pub ssh: Option<String>,
    /// x
    pub launcher: Option<Launcher>,
}
impl Hosts {
    /// x
    pub fn short(text: &str) -> Hosts {
        let mut hosts = Vec::new();
        let mut role = Role::Load;
        for word in text.split(',') {
            let name = match word.split_once('=') {
                Some((word, name)) => {
                    role = if word == "subject" { Role::Subject } else { Role::Load };
                    name
                }
                None => word,
            };
            let local = name.starts_with("local");
            hosts.push(HostPlan {
                name: name.to_owned(),
                address: if local { "127.0.0.1".to_owned() } else { name.to_owned() },
                role,
                cpus: None,
                quintain: None,
                directory: None,
                ssh: None,
                launcher: local.then_some(Launcher::Local),
            });
        }
        Hosts { launcher: Launcher::Ssh, deploy: false, hosts }
    }
}
