//! Updates that are in flight when the process that polls is killed.

use std::time::Duration;

use botmesh_core::testing::Dice;
use botmesh_telegram::testing::{Call, FakeChat};
use botmesh_tests::durable::answers::Differences;
use botmesh_tests::durable::store::Store;
use botmesh_tests::process::Process;

use crate::setting::{Setting, postgres, seed, until};

const CHATS: i64 = 25;
const MESSAGES: usize = 4;
const HANDLING: Duration = Duration::from_millis(300);

struct Talk {
    chat: FakeChat,
    said: Vec<String>,
}

impl Talk {
    fn heard(&self) -> Vec<String> {
        self.chat.heard().iter().map(Call::text).collect()
    }

    fn differences(&self) -> Differences {
        Differences::find(&self.said, &self.heard())
    }
}

/// A hundred updates wait before anybody asks, so that they come in one answer.
fn talk(setting: &Setting) -> Vec<Talk> {
    let mut talks: Vec<_> = (1..=CHATS)
        .map(|user| Talk { chat: setting.platform.private(user), said: Vec::new() })
        .collect();
    for number in 0..MESSAGES {
        for talk in &mut talks {
            let words = format!("message {number}");
            talk.chat.says(&words);
            talk.said.push(words);
        }
    }
    talks
}

fn answered(talks: &[Talk]) -> usize {
    talks.iter().map(|talk| talk.heard().len()).sum()
}

/// Kills the process that polls somewhere between the first acknowledgement and the last answer.
async fn kill(setting: &Setting, talks: &[Talk], process: &mut Process) {
    let mut dice = Dice::new(seed(), 0);
    until("the updates are taken", || setting.platform.acknowledged() >= talks.len()).await;
    let enough = usize::try_from(dice.below(50)).unwrap();
    until("some are answered", || answered(talks) >= enough).await;
    // The last message of each chat takes longer.
    tokio::time::sleep(dice.between(Duration::ZERO, HANDLING / 2)).await;
    process.kill();
    let (taken, answers) = (setting.platform.acknowledged(), answered(talks));
    println!("killed with {taken} updates acknowledged and {answers} answered");
    // Else nothing was in flight, and the test would prove nothing.
    assert!(answers < taken, "{answers} of {taken} were answered already");
}

async fn the_chats_end(talks: &[Talk]) {
    for talk in talks {
        talk.chat.says("the end");
    }
    until("the chats end", || {
        talks.iter().all(|talk| talk.heard().iter().any(|heard| heard == "re the end"))
    })
    .await;
}

async fn nothing_is_lost(setting: &Setting, talks: &[Talk]) {
    let total = talks.iter().map(|talk| talk.said.len()).sum();
    until("everything is answered", || {
        let lost: usize = talks.iter().map(|talk| talk.differences().lost.len()).sum();
        lost == 0 && setting.platform.acknowledged() >= total
    })
    .await;
    // What comes last in each chat is behind all that might still be repeated.
    the_chats_end(talks).await;
    let mut repeated = 0;
    for talk in talks {
        let said = [talk.said.as_slice(), &["the end".to_owned()]].concat();
        let found = Differences::find(&said, &talk.heard());
        assert!(found.is_whole() && found.repeated.len() <= 1, "{found:?}: {:?}", talk.heard());
        repeated += found.repeated.len();
    }
    println!("{repeated} answers were repeated");
    assert_eq!(setting.platform.overlaps(), 0, "two pollers asked at once");
}

/// G1, G2, G4, G7: `kill -9` of a process that polls with a hundred updates in flight loses none of
/// them: Telegram's offset moves only behind the journal. One that is started anew answers each in
/// the order of its chat, and of each chat at most one answer twice.
#[tokio::test]
async fn a_kill_with_a_hundred_updates_in_flight_loses_none_on_sqlite() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::Sqlite { path: directory.path().join("bot.db") };
    let setting = Setting::new(store, HANDLING).await;
    let talks = talk(&setting);
    let mut first = setting.poller("alone");
    kill(&setting, &talks, &mut first).await;
    let _second = setting.poller("alone");
    nothing_is_lost(&setting, &talks).await;
}

/// G1, G2, G4, G7, E1: nor does it where another replica stands by, which takes over.
#[tokio::test]
async fn a_kill_with_a_hundred_updates_in_flight_loses_none_with_a_standby() {
    let Some(store) = postgres() else { return };
    let setting = Setting::new(store, HANDLING).await;
    let mut first = setting.poller("first");
    // It leads when it has answered.
    let early = setting.platform.private(CHATS + 1);
    early.says("who is there?");
    early.hears(0).await;
    let _second = setting.poller("second");
    let talks = talk(&setting);
    kill(&setting, &talks, &mut first).await;
    nothing_is_lost(&setting, &talks).await;
}

/// A bot without durability loses what was in flight, so the tests above would notice.
#[tokio::test]
async fn without_durability_a_kill_loses_what_was_in_flight() {
    let directory = tempfile::tempdir().unwrap();
    let store = Store::Sqlite { path: directory.path().join("bot.db") };
    let mut setting = Setting::new(store, HANDLING).await;
    setting.is_durable = false;
    let talks = talk(&setting);
    let mut first = setting.poller("alone");
    kill(&setting, &talks, &mut first).await;
    let _second = setting.poller("alone");
    the_chats_end(&talks).await;
    assert!(talks.iter().any(|talk| !talk.differences().lost.is_empty()), "nothing was lost");
}
