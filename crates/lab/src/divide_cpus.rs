//! Divides CPUs between the server and the generator.

use std::collections::BTreeSet;

use study::record::Cpu;

/// CPU numbers of the server and of the generator.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Share {
    /// CPUs of the server, ascending.
    pub subject: Vec<u32>,
    /// CPUs of the generator, ascending.
    pub generator: Vec<u32>,
    /// Whether any CPU serves both sides.
    pub shared: bool,
}

/// Divides `cpus`: the server gets `subject` of them; the generator gets `generator` or, if that is `None`, the rest.
/// Physical cores come before their siblings. Both sides share one NUMA node if they fit, and whole cores go to one
/// side if possible. With `None`, the generator gets no siblings of the server's CPUs unless nothing else is left. A
/// CPU serves both sides only if `may_share` is set and CPUs are too few. Fails with the numbers needed and available.
pub fn share(cpus: &[Cpu], subject: u32, generator: Option<u32>, may_share: bool) -> Result<Share, String> {
    let (subject, wanted, total) = (subject as usize, generator.map(|count| count as usize), cpus.len());
    let least = wanted.unwrap_or(1);
    if subject == 0 || least == 0 {
        return Err("server and generator need at least one CPU each".to_owned());
    }
    let both = subject + least;
    if subject.max(least) > total || (both > total && !may_share) {
        return Err(format!("needs {both} CPUs ({subject} for the server, {least} for the generator), has {total}"));
    }

    let cores = cores(cpus, both);
    let for_generator = cores_for_generator(&cores, subject, least);
    let (subjects, generators) = cores.split_at(cores.len() - for_generator);
    if for_generator == 0 {
        // Cores must be split or shared. The generator gets unused cores first, then siblings, then the server's CPUs.
        let mut order = threads(&cores);
        let taken = order.drain(..subject).collect::<Vec<_>>();
        let left = order.len();
        order.sort_by_key(|cpu| cores.iter().any(|core| core.contains(cpu) && core.iter().any(|c| taken.contains(c))));
        order.extend(taken.iter().rev());
        order.truncate(wanted.unwrap_or(left.max(1)));
        return Ok(finish(taken, order));
    }
    let subject = threads(subjects)[..subject].to_vec();
    let generator = match wanted {
        Some(count) => threads(generators)[..count].to_vec(),
        None => cores.iter().filter(|core| core.iter().all(|cpu| !subject.contains(cpu))).flatten().copied().collect(),
    };
    Ok(finish(subject, generator))
}

/// Gives `wanted` of `cpus` to a server whose generators run elsewhere. Fails with one line if `cpus` are too few.
pub fn alone(cpus: &[Cpu], wanted: u32) -> Result<Share, String> {
    let wanted = wanted as usize;
    if wanted > cpus.len() {
        return Err(format!("needs {wanted} CPUs for the server, has {}", cpus.len()));
    }
    let cores = cores(cpus, wanted);
    Ok(finish(threads(&cores)[..wanted].to_vec(), Vec::new()))
}

fn finish(mut subject: Vec<u32>, mut generator: Vec<u32>) -> Share {
    subject.sort_unstable();
    generator.sort_unstable();
    let shared = generator.iter().any(|cpu| subject.contains(cpu));
    Share { subject, generator, shared }
}

/// Groups CPUs by physical core, ordered by NUMA node. The first node with at least `needed` cores comes first.
fn cores(cpus: &[Cpu], needed: usize) -> Vec<Vec<u32>> {
    let mut cpus = cpus.to_vec();
    cpus.sort_by_key(|cpu| (cpu.node, cpu.package, cpu.core, cpu.index));
    let cores: Vec<&[Cpu]> = cpus.chunk_by(|a, b| (a.node, a.package, a.core) == (b.node, b.package, b.core)).collect();
    let in_node = |node: u32| cores.iter().filter(|core| core[0].node == node).count();
    let nodes: BTreeSet<u32> = cores.iter().map(|core| core[0].node).collect();
    let roomy = nodes.into_iter().find(|node| in_node(*node) >= needed);
    let (first, rest): (Vec<&[Cpu]>, Vec<&[Cpu]>) = cores.iter().partition(|core| Some(core[0].node) == roomy);
    first.into_iter().chain(rest).map(|core| core.iter().map(|cpu| cpu.index).collect()).collect()
}

/// Number of cores that the generator gets from the end of `cores`, so that no core is split. Both sides get only first
/// threads if possible; otherwise the generator gets as few cores as suffice. 0 if impossible.
fn cores_for_generator(cores: &[Vec<u32>], subject: usize, generator: usize) -> usize {
    if subject + generator <= cores.len() {
        return cores.len() - subject;
    }
    let capacity = |cores: &[Vec<u32>]| cores.iter().map(Vec::len).sum::<usize>();
    let fits = |count: &usize| {
        let (subjects, generators) = cores.split_at(cores.len() - count);
        capacity(generators) >= generator && capacity(subjects) >= subject
    };
    (1..cores.len()).find(fits).unwrap_or(0)
}

/// CPUs in the order of assignment: the first thread of every core, then the second of every core, and so on.
fn threads(cores: &[Vec<u32>]) -> Vec<u32> {
    let deepest = cores.iter().map(Vec::len).max().unwrap_or(0);
    (0..deepest).flat_map(|depth| cores.iter().filter_map(move |core| core.get(depth).copied())).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Builds one package of `cores` cores with `threads` threads per node; siblings are numbered as in Linux.
    fn machine(nodes: u32, cores: u32, threads: u32) -> Vec<Cpu> {
        let cpu = |thread: u32, node: u32, core: u32| Cpu {
            index: thread * nodes * cores + node * cores + core,
            core,
            package: node,
            node,
        };
        (0..threads)
            .flat_map(|thread| (0..nodes).flat_map(move |node| (0..cores).map(move |core| cpu(thread, node, core))))
            .collect()
    }

    fn check(cpus: &[Cpu], subject: u32, generator: Option<u32>, may_share: bool, expected: &str) {
        let text = match share(cpus, subject, generator, may_share) {
            Ok(share) => format!(
                "subject {} generator {}{}",
                crate::cpu_list::format(&share.subject),
                crate::cpu_list::format(&share.generator),
                if share.shared { " shared" } else { "" }
            ),
            Err(text) => text,
        };
        assert_eq!(text, expected, "{subject} {generator:?} {may_share}");
    }

    #[test]
    fn divides_two_cpus() {
        let cpus = machine(1, 2, 1);
        check(&cpus, 1, None, false, "subject 0 generator 1");
        check(&cpus, 1, Some(1), false, "subject 0 generator 1");
        check(&cpus, 2, None, false, "needs 3 CPUs (2 for the server, 1 for the generator), has 2");
        check(&cpus, 2, None, true, "subject 0-1 generator 1 shared");
        check(&cpus, 2, Some(2), true, "subject 0-1 generator 0-1 shared");
        check(&cpus, 3, None, true, "needs 4 CPUs (3 for the server, 1 for the generator), has 2");
        check(&cpus, 0, None, true, "server and generator need at least one CPU each");
    }

    #[test]
    fn shares_one_cpu_only_if_allowed() {
        let cpus = machine(1, 1, 1);
        check(&cpus, 1, None, true, "subject 0 generator 0 shared");
        check(&cpus, 1, None, false, "needs 2 CPUs (1 for the server, 1 for the generator), has 1");
    }

    #[test]
    fn splits_a_single_core() {
        check(&machine(1, 1, 2), 1, None, false, "subject 0 generator 1");
    }

    #[test]
    fn prefers_physical_cores_in_one_node() {
        let cpus = machine(2, 20, 2);
        check(&cpus, 4, Some(8), false, "subject 0-3 generator 4-11");
        check(&cpus, 12, Some(8), false, "subject 0-11 generator 12-19");
        check(&cpus, 12, Some(9), false, "subject 0-11 generator 12-20");
    }

    #[test]
    fn rest_excludes_siblings_of_the_server() {
        check(&machine(2, 20, 2), 4, None, false, "subject 0-3 generator 4-39,44-79");
        check(&machine(1, 4, 2), 3, None, false, "subject 0-2 generator 3,7");
    }

    #[test]
    fn prefers_siblings_to_split_cores() {
        // 5 CPUs for the server need 3 of 4 cores, which leaves one core for the generator.
        check(&machine(1, 4, 2), 5, Some(2), false, "subject 0-2,4-5 generator 3,7");
        check(&machine(1, 4, 2), 2, Some(4), false, "subject 0-1 generator 2-3,6-7");
    }

    #[test]
    fn prefers_split_cores_to_shared_cpus() {
        check(&machine(1, 4, 2), 7, Some(1), false, "subject 0-6 generator 7");
        check(&machine(1, 2, 2), 3, Some(1), true, "subject 0-2 generator 3");
    }

    #[test]
    fn handles_gaps_in_cpu_numbers() {
        let cpus = [4, 6, 9].map(|index| Cpu { index, core: index, package: 0, node: 0 });
        check(&cpus, 1, None, false, "subject 4 generator 6,9");
    }

    #[test]
    fn prefers_a_node_with_room() {
        let mut cpus = machine(2, 4, 1);
        cpus.retain(|cpu| cpu.index > 1); // leaves 2 CPUs of node 0 and 4 of node 1
        check(&cpus, 2, Some(2), false, "subject 4-5 generator 6-7");
    }

    #[test]
    fn every_share_keeps_its_promise() {
        for cpus in [machine(1, 1, 1), machine(1, 3, 2), machine(2, 2, 2), machine(2, 3, 1)] {
            for subject in 1..=cpus.len() as u32 + 1 {
                for generator in (0..=cpus.len() as u32 + 1).map(|n| (n > 0).then_some(n)) {
                    for may_share in [false, true] {
                        let Ok(share) = share(&cpus, subject, generator, may_share) else { continue };
                        let facts = format!("{} cpus, {subject}, {generator:?}, {may_share}: {share:?}", cpus.len());
                        assert_eq!(share.subject.len(), subject as usize, "{facts}");
                        assert!(generator.is_none_or(|n| share.generator.len() == n as usize), "{facts}");
                        assert!(!share.generator.is_empty(), "{facts}");
                        let fits = subject + generator.unwrap_or(1) <= cpus.len() as u32;
                        assert_eq!(share.shared, !fits, "{facts}");
                        assert!(fits || may_share, "{facts}");
                        for list in [&share.subject, &share.generator] {
                            assert!(list.is_sorted_by(|a, b| a < b), "{facts}");
                            assert!(list.iter().all(|index| cpus.iter().any(|cpu| cpu.index == *index)), "{facts}");
                        }
                    }
                }
            }
        }
    }
}
