use super::*;

fn parsed(line: &str) -> Result<Command> {
    parse(line.split_whitespace().map(str::to_owned))
}

#[test]
fn every_command_is_understood() {
    assert_eq!(parsed("").unwrap(), Command::Help);
    assert_eq!(parsed("ci").unwrap(), Command::Ci { install: false });
    assert_eq!(parsed("ci --install").unwrap(), Command::Ci { install: true });
    assert_eq!(parsed("tidy").unwrap(), Command::Tidy);
    assert_eq!(parsed("guarantees").unwrap(), Command::Guarantees);
    assert_eq!(
        parsed("services --install up").unwrap(),
        Command::Services { action: Action::Up, install: true }
    );
    assert_eq!(
        parsed("services down").unwrap(),
        Command::Services { action: Action::Down, install: false }
    );
    assert_eq!(
        parsed("bench dispatch --chats 1000").unwrap(),
        Command::Bench {
            name: Some("dispatch".into()),
            arguments: vec!["--chats".into(), "1000".into()]
        }
    );
    assert_eq!(
        parsed("chaos --minutes 1").unwrap(),
        Command::Chaos { arguments: vec!["--minutes".into(), "1".into()] }
    );
    assert_eq!(parsed("bench").unwrap(), Command::Bench { name: None, arguments: vec![] });
    let simulate = |seeds, first| Command::Simulate { seeds, first };
    assert_eq!(parsed("simulate").unwrap(), simulate(2_000, 0));
    assert_eq!(parsed("simulate --first 7 --seeds 50").unwrap(), simulate(50, 7));
    assert_eq!(
        parsed("test -p botmesh-core fifo").unwrap(),
        Command::Test { arguments: vec!["-p".into(), "botmesh-core".into(), "fifo".into()] }
    );
}

#[test]
fn what_is_not_understood_is_named() {
    for (line, word) in [
        ("tidi", "tidi"),
        ("services", "up, down or status"),
        ("services sideways", "sideways"),
        ("services up now", "now"),
        ("ci fast", "fast"),
        ("simulate --seeds", "number"),
        ("simulate --seeds many", "many"),
    ] {
        let error = parsed(line).unwrap_err().to_string();
        assert!(error.contains(word), "{line}: {error}");
    }
}
