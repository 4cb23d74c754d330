//! What the threads of a pool do beside their tasks: look after something every once in a while, without a thread for it.

use std::sync::{Arc, Mutex, PoisonError, Weak};

/// Something to look after. Called by any thread of the pool, and by several at once; should be quick and may do nothing.
pub type Chore = dyn Fn() + Send + Sync;

/// The chores of a pool. Each ends with its last owner, who is not the pool.
#[derive(Default)]
pub(super) struct Chores(Mutex<Vec<Weak<Chore>>>);

impl Chores {
    pub(super) fn add(&self, chore: &Arc<Chore>) {
        let mut chores = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        chores.retain(|chore| chore.strong_count() > 0);
        chores.push(Arc::downgrade(chore));
    }

    pub(super) fn run(&self) {
        // Not under the lock: a chore may take its time, or be the last owner of something.
        let chores = self.0.lock().unwrap_or_else(PoisonError::into_inner).clone();
        chores.iter().filter_map(Weak::upgrade).for_each(|chore| chore());
    }
}

impl std::fmt::Debug for Chores {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str("Chores")
    }
}
