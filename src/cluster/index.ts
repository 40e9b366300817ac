/**
 * Many machines: runs on effect/cluster.
 *
 * @since 0.1.0
 */

export * as ClusterKernel from "./ClusterKernel.ts"
export * as ClusterNode from "./ClusterNode.ts"
export * as RunEntity from "./RunEntity.ts"
