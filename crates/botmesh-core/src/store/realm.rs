use std::fmt;
use std::sync::Arc;

/// Tells whether a store and a coordinator are one backend, reached in one way: then steps of
/// both may be made as one. Clones are the same realm.
///
/// ```
/// use botmesh_core::store::Realm;
/// let realm = Realm::new();
/// assert_eq!(realm, realm.clone());
/// assert_ne!(realm, Realm::new());
/// ```
#[derive(Clone)]
pub struct Realm(Arc<()>);

impl Realm {
    /// A realm of its own.
    #[must_use]
    pub fn new() -> Self {
        Self(Arc::new(()))
    }
}

impl Default for Realm {
    fn default() -> Self {
        Self::new()
    }
}

impl PartialEq for Realm {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0)
    }
}

impl Eq for Realm {}

impl fmt::Debug for Realm {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Realm({:p})", Arc::as_ptr(&self.0))
    }
}
