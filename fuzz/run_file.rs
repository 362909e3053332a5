//! Assertions for any run file.

use store::run_file::{Entry, Writer, read};

/// Checks that bytes with a valid checksum are rejected or give a run that survives a round trip and can be analyzed.
pub(crate) fn run_file(bytes: &[u8]) {
    let _ = read(bytes, |_, _| Ok(()));
    let (mut run, mut records, mut lines) = (None, Vec::new(), Vec::new());
    let content = read(&packed(bytes)[..], |entry, json| {
        lines.push(json.to_owned());
        match entry {
            Entry::Run(found) => run = Some(found),
            Entry::Trial(record) => records.push(*record),
        }
        Ok(())
    });
    let (Ok(content), Some(run)) = (content, run) else { return };
    assert_eq!(content.trials, records.len() as u64);
    let mut writer = Writer::new(Vec::new(), "").expect("memory takes all");
    writer.run(&lines[0]).expect("it was read");
    lines[1..].iter().for_each(|json| writer.trial(json).expect("it was read"));
    let (file, _) = writer.end().expect("memory takes all");
    let mut at = 0;
    read(&file[..], |_, json| {
        assert_eq!(json, lines[at].trim().replace('\r', " "));
        at += 1;
        Ok(())
    })
    .expect("a written file can be read");
    analysis::judge_again(&run, &mut records);
    let findings = analysis::analyze(&run, &records);
    assert_eq!(findings.run, run.id);
}

/// Packs these lines as a run file, with a matching last line.
pub(crate) fn packed(lines: &[u8]) -> Vec<u8> {
    let mut writer = Writer::bare(Vec::new());
    for line in lines.split(|byte| *byte == b'\n') {
        writer.raw(line).expect("memory takes all");
    }
    writer.end().expect("memory takes all").0
}
