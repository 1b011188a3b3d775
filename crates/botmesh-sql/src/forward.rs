/// Implements the traits of a store for `$store` by handing every call to its field `$inner`,
/// which is an [`SqlStore`](crate::SqlStore).
#[macro_export]
macro_rules! forward_store {
    ($store:ty, $inner:ident) => {
        const _: () = {
            use $crate::core::store::{
                ConditionalCheckpointStore, InboxStore, LockStore, Store, StoreError,
            };

            #[$crate::async_trait]
            impl Store for $store {
                fn name(&self) -> &'static str {
                    self.$inner.name()
                }

                fn is_shared(&self) -> bool {
                    self.$inner.is_shared()
                }

                fn is_durable(&self) -> bool {
                    self.$inner.is_durable()
                }

                async fn prepare(&self) -> Result<(), StoreError> {
                    self.$inner.prepare().await
                }

                fn conditional_checkpoints(&self) -> Option<&dyn ConditionalCheckpointStore> {
                    self.$inner.conditional_checkpoints()
                }

                fn locks(&self) -> Option<&dyn LockStore> {
                    self.$inner.locks()
                }

                fn inbox(&self) -> Option<&dyn InboxStore> {
                    self.$inner.inbox()
                }
            }
        };

        $crate::forward_contracts!($store, $inner);
    };
}

/// As [`forward_store`](crate::forward_store), without [`Store`](botmesh_core::store::Store)
/// itself.
#[macro_export]
macro_rules! forward_contracts {
    ($store:ty, $inner:ident) => {
        const _: () = {
            use std::time::Duration;

            use $crate::core::store::{
                CheckpointStore, CheckpointWrite, Collection, Document, DocumentStore, StoreError,
                StoredCheckpoint, Swap,
            };
            use $crate::core::{ChatKey, Fence, Revision};

            #[$crate::async_trait]
            impl DocumentStore for $store {
                async fn load_document(
                    &self,
                    collection: Collection,
                    key: &str,
                ) -> Result<Option<Document>, StoreError> {
                    self.$inner.load_document(collection, key).await
                }

                async fn save_document_if(
                    &self,
                    collection: Collection,
                    key: &str,
                    body: &str,
                    expected: Option<Revision>,
                ) -> Result<Swap, StoreError> {
                    self.$inner.save_document_if(collection, key, body, expected).await
                }

                async fn remove_document_if(
                    &self,
                    collection: Collection,
                    key: &str,
                    expected: Revision,
                ) -> Result<Swap, StoreError> {
                    self.$inner.remove_document_if(collection, key, expected).await
                }
            }

            #[$crate::async_trait]
            impl CheckpointStore for $store {
                async fn load_checkpoint(
                    &self,
                    key: &ChatKey,
                ) -> Result<Option<StoredCheckpoint>, StoreError> {
                    self.$inner.load_checkpoint(key).await
                }

                async fn set_checkpoint(
                    &self,
                    key: &ChatKey,
                    write: CheckpointWrite<'_>,
                    fence: Fence,
                ) -> Result<Revision, StoreError> {
                    self.$inner.set_checkpoint(key, write, fence).await
                }

                async fn clear_checkpoint(&self, key: &ChatKey) -> Result<(), StoreError> {
                    self.$inner.clear_checkpoint(key).await
                }

                async fn checkpoints_to_wake(
                    &self,
                    horizon: Duration,
                    limit: usize,
                ) -> Result<Vec<(ChatKey, Duration)>, StoreError> {
                    self.$inner.checkpoints_to_wake(horizon, limit).await
                }
            }
        };
    };
}
