//! Assertions for any run file.

use store::run_file::{Check, Line, RunFileError, Writer, read};

/// Checks that bytes with a valid checksum are rejected or give a run that survives a round trip and can be analyzed.
pub(crate) fn run_file(bytes: &[u8]) {
    let _ = read(bytes, |_, _| Ok(()));
    let mut lines = Vec::new();
    let (mut check, mut records) = (Check::default(), Vec::new());
    let content = read(&packed(bytes)[..], |number, line| {
        records.extend(check.line(number, line)?);
        lines.push(match line {
            Line::Run(json) => (true, json.to_owned()),
            Line::Trial(json) => (false, json.to_owned()),
        });
        Ok::<_, RunFileError>(())
    });
    let (Ok(content), Some(run)) = (content, &check.run) else { return };
    assert_eq!(content.trials, records.len() as u64);
    let mut writer = Writer::new(Vec::new(), "").expect("memory takes all");
    for (is_run, json) in &lines {
        writer.line(if *is_run { Line::Run(json) } else { Line::Trial(json) }).expect("it was read");
    }
    let (file, _) = writer.end().expect("memory takes all");
    let mut at = 0;
    read(&file[..], |_, line| {
        let (Line::Run(json) | Line::Trial(json)) = line;
        assert_eq!(json, lines[at].1.trim().replace('\r', " "));
        at += 1;
        Ok(())
    })
    .expect("a written file can be read");
    analysis::judge_again(run, &mut records);
    let findings = analysis::analyze(run, &records);
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
