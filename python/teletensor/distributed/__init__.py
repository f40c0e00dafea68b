"""torch.distributed: groups of engines that train together, one process per rank. See docs/distributed.md.

``teletensor launch -n 4 script.py`` starts the ranks; ``init_process_group()`` forms the group of their engines.
"""

from .._lazy import lazy_attributes as _lazy_attributes

# Imported at their first use: a thread that imports the package does not wait for one that imports a module of it.
_NAMES = {
    "_backend": (
        "Backend BackendConfig get_default_backend_for_device is_available is_backend_available is_gloo_available "
        "is_mpi_available is_nccl_available is_torchelastic_launched is_ucc_available is_xccl_available"
    ),
    "_breakpoint": "breakpoint",
    "_coalescing": "_coalescing_manager",
    "_collectives": (
        "all_gather all_gather_coalesced all_gather_into_tensor all_gather_single all_reduce all_reduce_coalesced "
        "all_to_all all_to_all_single barrier broadcast gather gather_into_tensor gather_single monitored_barrier "
        "record_comm reduce reduce_scatter reduce_scatter_single reduce_scatter_tensor scatter _all_gather_base "
        "_reduce_scatter_base"
    ),
    "_debug": "DebugLevel get_debug_level set_debug_level set_debug_level_from_env",
    "_errors": "DistBackendError DistError DistNetworkError DistStoreError QueueEmptyError",
    "_flight_recorder": "dump_flight_recorder",
    "_grad_bucket": "GradBucket",
    "_groups": (
        "destroy_process_group init_process_group new_group new_subgroups new_subgroups_by_enumeration "
        "shrink_group split_group"
    ),
    "_objects": (
        "all_gather_object broadcast_object_list gather_object recv_object_list scatter_object_list "
        "send_object_list"
    ),
    "_options": (
        "AllgatherOptions AllreduceCoalescedOptions AllreduceOptions AllToAllOptions BarrierOptions "
        "BroadcastOptions GatherOptions ReduceOptions ReduceScatterOptions ScatterOptions"
    ),
    "_point_to_point": "P2POp batch_isend_irecv irecv isend recv send",
    "_process_group": "ProcessGroup",
    "_reduce_op": "ReduceOp reduce_op supports_complex _make_nccl_premul_sum=make_premul_sum",
    "_rendezvous": "register_rendezvous_handler rendezvous",
    "_store": "FileStore HashStore PrefixStore Store TCPStore",
    "_work": "Work",
    "_world": (
        "GroupMember GroupName default_pg_timeout get_backend get_backend_config get_backend_impl get_global_rank "
        "get_group_rank get_node_local_rank get_pg_count get_process_group_ranks get_rank get_world_size group "
        "is_initialized set_timeout _get_default_group _rank_not_in_group"
    ),
    "device_mesh": "DeviceMesh init_device_mesh",
}

__getattr__, __dir__ = _lazy_attributes(globals(), None, _NAMES)
