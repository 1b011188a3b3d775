/// Makes a type a [`Coordinator`](crate::coordination::Coordinator) by the
/// [`CoordinatorClient`](crate::coordination::client::CoordinatorClient) in one of its fields. With the
/// name of an async method, that is called before each start and may refuse it with a
/// [`CoordinationError`](crate::coordination::CoordinationError).
///
/// ```
/// use botmesh_core::coordination::CoordinationError;
/// use botmesh_core::coordination::client::{Backend, CoordinatorClient};
///
/// #[derive(Debug)]
/// struct MyCoordinator<B> {
///     client: CoordinatorClient<B>,
/// }
/// # #[derive(Debug)]
/// # struct MyBackend;
/// # #[async_trait::async_trait]
/// # impl Backend for MyBackend {
/// #     fn name(&self) -> &'static str { "mine" }
/// #     async fn send(
/// #         &self,
/// #         _: &botmesh_core::coordination::transition::Operation,
/// #     ) -> Result<
/// #         botmesh_core::coordination::transition::Reply,
/// #         botmesh_core::coordination::client::BackendError,
/// #     > { unreachable!() }
/// #     async fn listen(
/// #         &self,
/// #         _: &botmesh_core::id::IncarnationId,
/// #         _: botmesh_core::coordination::client::PushSink,
/// #     ) -> Result<(), botmesh_core::coordination::client::BackendError> { Ok(()) }
/// # }
///
/// impl MyCoordinator<MyBackend> {
///     async fn examine(&self) -> Result<(), CoordinationError> {
///         Ok(())
///     }
/// }
///
/// botmesh_core::coordinator_by_client!(MyCoordinator<MyBackend>, client, examine);
/// ```
#[macro_export]
macro_rules! coordinator_by_client {
    ($coordinator:ty, $client:tt $(, $before:ident)?) => {
        #[$crate::coordination::client::__async_trait]
        impl $crate::coordination::Coordinator for $coordinator {
            fn replica_id(&self) -> &$crate::id::ReplicaId {
                $crate::coordination::Coordinator::replica_id(&self.$client)
            }

            fn incarnation(&self) -> ::std::option::Option<$crate::id::IncarnationId> {
                $crate::coordination::Coordinator::incarnation(&self.$client)
            }

            async fn start(
                &self,
            ) -> ::std::result::Result<(), $crate::coordination::CoordinationError> {
                $(self.$before().await?;)?
                $crate::coordination::Coordinator::start(&self.$client).await
            }

            async fn stop(
                &self,
            ) -> ::std::result::Result<(), $crate::coordination::CoordinationError> {
                $crate::coordination::Coordinator::stop(&self.$client).await
            }

            async fn reserve(
                &self,
                key: &$crate::id::ChatKey,
            ) -> ::std::result::Result<
                $crate::coordination::Ticket,
                $crate::coordination::CoordinationError,
            > {
                $crate::coordination::Coordinator::reserve(&self.$client, key).await
            }

            async fn acquire_turn(
                &self,
                ticket: $crate::coordination::Ticket,
                options: $crate::coordination::AcquireTurn,
            ) -> ::std::result::Result<
                $crate::coordination::ChatTurn,
                $crate::coordination::CoordinationError,
            > {
                $crate::coordination::Coordinator::acquire_turn(&self.$client, ticket, options).await
            }

            async fn lead(
                &self,
                name: &$crate::id::LeaderName,
            ) -> ::std::result::Result<
                $crate::coordination::Leadership,
                $crate::coordination::CoordinationError,
            > {
                $crate::coordination::Coordinator::lead(&self.$client, name).await
            }

            async fn try_lead(
                &self,
                name: &$crate::id::LeaderName,
            ) -> ::std::result::Result<
                ::std::option::Option<$crate::coordination::Leadership>,
                $crate::coordination::CoordinationError,
            > {
                $crate::coordination::Coordinator::try_lead(&self.$client, name).await
            }

            fn subscribe(
                &self,
            ) -> $crate::coordination::client::__broadcast::Receiver<$crate::coordination::CoordinatorEvent> {
                $crate::coordination::Coordinator::subscribe(&self.$client)
            }

            fn journaled(
                &self,
            ) -> ::std::option::Option<&dyn $crate::coordination::JournaledTurns> {
                $crate::coordination::Coordinator::journaled(&self.$client)
            }
        }
    };
}
