//! Subscribers of the policies in force: read, and changed on all interfaces of a network namespace or on none.

use crate::command::apply::{Edit, Preview, apply_edits, preview_edits};
use crate::command::change::Done;
use crate::command::recover::recover_unless_held;
use crate::engine::managed::managed;
use crate::record::{Phase, Record};
use crate::status::{Pinned, SubscriberStatus};
use crate::system::netns;
use crate::system::privilege::require_root;
use sluice_error::{Error, Result};
use sluice_policy::edit::{SubscriberChange, with_subscribers as edited};
use sluice_policy::{Policy, Source, parse};
use std::time::Duration;

/// The subscribers of a managed interface whose key or name is wanted, in the order of the policy.
///
/// # Errors
/// The policy has none.
pub fn subscribers_of(interface: &str, wanted: impl Fn(&str, &str) -> bool) -> Result<Vec<SubscriberStatus>> {
    require_root()?;
    recover_unless_held()?;
    let pinned = Pinned::open(managed(interface)?)?;
    let tree = pinned.tree()?.ok_or_else(|| {
        Error::input(format!("{interface}: the policy has no subscribers"))
            .help("`sluice status` shows what each interface has")
    })?;
    Ok(tree.subscribers(wanted))
}

/// The interfaces of the process's namespace whose policies have subscribers.
///
/// # Errors
/// There are none.
pub fn with_subscribers() -> Result<Vec<String>> {
    let own = netns::inode()?;
    let here = Record::all()?.into_iter().filter(|record| record.netns == own && record.way.is_some());
    let names: Vec<String> =
        here.filter(|record| record.phase == Phase::Active).map(|record| record.interface).collect();
    if names.is_empty() {
        return Err(Error::input("no managed interface has a policy with subscribers")
            .help("write a policy with \"subscribers\" (docs/policy.md), then `sluice up IFACE --policy P`"));
    }
    Ok(names)
}

/// The error of a key that no subscriber has.
pub fn no_subscriber(name: &str) -> Error {
    Error::input(format!("there is no subscriber \"{}\"", name.escape_debug()))
        .help("`sluice subscriber list --search TEXT` finds keys by name, site, plan or address")
}

/// Changes of subscribers, to be made together.
#[derive(Debug, Clone)]
pub struct SubscriberEdits {
    /// The changes, one after the other.
    pub changes: Vec<SubscriberChange>,
    /// `--confirm`: time that they stay in force unless they are confirmed.
    pub confirm: Option<Duration>,
    /// Reason, for the history.
    pub message: String,
}

impl SubscriberEdits {
    fn policy(&self, text: &str) -> Result<Policy> {
        let edited = edited(text, &self.changes).map_err(|name| match name {
            Some(name) => no_subscriber(&name),
            None => Error::system("the policy in force cannot be read"),
        })?;
        parse(&Source::new("the policy in force, edited", edited))
            .map_err(|errors| Error::input(errors.to_string().trim_end()))
    }

    fn with<T>(&self, interfaces: &[String], work: impl FnOnce(&[Edit<'_>]) -> Result<T>) -> Result<T> {
        let edit = |text: &str| self.policy(text);
        let edits: Vec<Edit<'_>> = interfaces
            .iter()
            .map(|interface| Edit {
                interface,
                edit: &edit,
                confirm: self.confirm,
                message: Some(self.message.clone()),
                // Each change names its subscriber.
                force: true,
            })
            .collect();
        work(&edits)
    }

    /// Makes the changes on all of these interfaces, or on none.
    pub fn apply(&self, interfaces: &[String]) -> Result<Vec<Done>> {
        self.with(interfaces, apply_edits)
    }

    /// The differences that the changes would make. Changes nothing.
    pub fn preview(&self, interfaces: &[String]) -> Result<Vec<Preview>> {
        self.with(interfaces, preview_edits)
    }
}
