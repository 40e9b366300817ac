/**
 * The place of a process in a cluster: its address, its shards, and its connections to other processes.
 *
 * Runners find each other, their shards and their messages in PostgreSQL, and communicate over TCP. Every process of a
 * cluster uses the same database, and the same number of shards, which must not change while the cluster runs.
 *
 * Each layer uses the `SqlClient` in context, with one connection on which it renews the locks of its shards.
 *
 * @since 0.1.0
 */

import { layerK8sHttpClient } from "@effect/platform-node/NodeClusterSocket"
import * as NodeSocket from "@effect/platform-node/NodeSocket"
import * as NodeSocketServer from "@effect/platform-node/NodeSocketServer"
import type { MessageStorage } from "effect/cluster/MessageStorage"
import { make as makeAddress } from "effect/cluster/RunnerAddress"
import * as RunnerHealth from "effect/cluster/RunnerHealth"
import * as Runners from "effect/cluster/Runners"
import type { Sharding } from "effect/cluster/Sharding"
import * as ShardingConfig from "effect/cluster/ShardingConfig"
import * as SocketRunner from "effect/cluster/SocketRunner"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import * as RpcClient from "effect/rpc/RpcClient"
import * as RpcSerialization from "effect/rpc/RpcSerialization"
import { Socket } from "effect/socket/Socket"
import type { SocketServerError } from "effect/socket/SocketServer"
import { SqlClient } from "effect/sql/SqlClient"
import { closedInTime } from "../kit/closedInTime.ts"
import { layerFor } from "../kit/layerFor.ts"
import { NodeLimits } from "./internal/nodeLimits.ts"
import * as ShardLocks from "./internal/shardLocks.ts"
import * as SteadyClock from "./internal/steadyClock.ts"
import * as TakenMessages from "./internal/takenMessages.ts"

// ---------------------------------------------------------------- models

/**
 * The options of a client.
 *
 * @category models
 * @since 0.1.0
 */
export interface ClientOptions {
  /** The groups of shards, the same on every process (see `RunEntity`). Default: `default`. */
  readonly groups?: ReadonlyArray<string> | undefined
  /** Number of shards of a group. Do not change it while the cluster runs. Default: 300. */
  readonly shardsPerGroup?: number | undefined
  /**
   * Time after which the locks of a runner expire unless it renews them, and the longest time until another runner
   * continues the runs of one that died. A value below the longest pause of a process or the database moves runs
   * without need. Default: 10 seconds.
   */
  readonly lockExpiration?: Duration.Input | undefined
}

/**
 * The options of a runner.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options extends ClientOptions {
  /** The host at which other processes reach this one. */
  readonly host: string
  /** The port at which other processes reach this one. */
  readonly port: number
  /** The host to listen on. Default: `host`. */
  readonly listenHost?: string | undefined
  /** The port to listen on. Default: `port`. */
  readonly listenPort?: number | undefined
  /** The groups of shards whose runs this runner takes. Default: `default`. */
  readonly takes?: ReadonlyArray<string> | undefined
  /**
   * Maximum number of active runs, at least 1. A thousand more wait for their places here, the rest in the database. A
   * run at rest has no place. Default: 10,000.
   */
  readonly maxRuns?: number | undefined
  /** Maximum number of messages that may wait for one run. Default: 4,096. */
  readonly mailbox?: number | undefined
  /** How dead runners are detected before their locks expire: by a ping, or by Kubernetes. Default: `ping`. */
  readonly health?: "ping" | "k8s" | undefined
  /**
   * Time that new runners wait for others before shards move to them, so that a rollout moves each shard once. Default:
   * 2 seconds.
   */
  readonly joinDelay?: Duration.Input | undefined
}

// ---------------------------------------------------------------- layers

/**
 * Makes this process a runner of the cluster in the database in context.
 *
 * @example
 * const Node = ClusterNode.layer({ host: "10.0.0.5", port: 34431 })
 *
 * @category layers
 * @since 0.1.0
 */
export const layer = (options: Options): Layer.Layer<Sharding | MessageStorage, SocketServerError, SqlClient> =>
  perDatabase(options, () => runner(options))

/**
 * Makes this process a client of the cluster in the database in context. It listens on no port.
 *
 * @category layers
 * @since 0.1.0
 */
export const layerClient = (options: ClientOptions = {}): Layer.Layer<Sharding | MessageStorage, never, SqlClient> =>
  perDatabase(options, () => client(options))

// ---------------------------------------------------------------- parts

/**
 * Builds a layer once for each database. Effect's layers of a cluster are constants, which one program builds once, so
 * each database gets its own. It closes within half the time after which its locks expire anyway.
 */
const perDatabase = <A, E>(
  options: ClientOptions,
  make: () => Layer.Layer<A, E, SqlClient>
): Layer.Layer<A, E, SqlClient> => {
  const limit = Duration.times(lockExpirationOf(options), 0.5)
  return layerFor(SqlClient, () =>
    closedInTime(
      Layer.suspend(() => Layer.fresh(make())),
      "a node of a cluster",
      limit
    )
  )
}

const runner = (options: Options): Layer.Layer<Sharding | MessageStorage, SocketServerError, SqlClient> => {
  const { health = "ping", host, listenHost = host, listenPort = options.port, maxRuns = 10_000, port } = options
  const limits = { maxRuns, lockExpiration: Duration.toMillis(lockExpirationOf(options)) }
  const server = NodeSocketServer.layer({ host: listenHost, port: listenPort, noDelay: true })
  const healthy =
    health === "k8s"
      ? Layer.provide(RunnerHealth.layerK8s(), layerK8sHttpClient)
      : Layer.provide(RunnerHealth.layerPing, Layer.provide(Runners.layerRpc, protocol))
  const config = configOf(options, {
    runnerAddress: Option.some(makeAddress(host, port)),
    assignedShardGroups: options.takes ?? ["default"],
    maxResidentEntities: maxRuns + 1_000,
    entityMailboxCapacity: options.mailbox ?? 4_096,
    runnerJoinDebounce: options.joinDelay ?? Duration.seconds(2)
  })
  return SocketRunner.layer
    .pipe(
      Layer.provide([server, protocol, healthy]),
      Layer.provideMerge(TakenMessages.layer),
      Layer.provide([ShardLocks.layer, config, serialization])
    )
    .pipe(Layer.provide([config, serialization, steadyClock]), Layer.merge(Layer.succeed(NodeLimits, limits)))
}

const client = (options: ClientOptions): Layer.Layer<Sharding | MessageStorage, never, SqlClient> => {
  const config = configOf(options, { runnerAddress: Option.none() })
  return SocketRunner.layerClientOnly.pipe(
    Layer.provide(protocol),
    Layer.provideMerge(TakenMessages.layer),
    Layer.provide(ShardLocks.layer),
    Layer.provide([config, serialization, steadyClock])
  )
}

const lockExpirationOf = ({ lockExpiration = "10 seconds" }: ClientOptions): Duration.Duration =>
  Duration.fromInputUnsafe(lockExpiration)

type Config = Partial<ShardingConfig.ShardingConfig["Service"]>

const configOf = (options: ClientOptions, own: Config): Layer.Layer<ShardingConfig.ShardingConfig> => {
  const expiration = lockExpirationOf(options)
  return ShardingConfig.layer({
    availableShardGroups: options.groups ?? ["default"],
    shardsPerGroup: options.shardsPerGroup ?? 300,
    shardLockExpiration: expiration,
    shardLockDisableAdvisory: true,
    shardLockRefreshInterval: Duration.times(expiration, 0.3),
    // A run that is given up finishes its step and cleans up before its lock is released.
    entityTerminationTimeout: expiration,
    refreshAssignmentsInterval: Duration.millis(500),
    runnerHealthCheckInterval: Duration.seconds(15),
    entityMessagePollInterval: Duration.seconds(2),
    entityReplyPollInterval: Duration.millis(200),
    simulateRemoteSerialization: false,
    ...own
  })
}

/** Made anew for each node: a test may give one its own clock. */
const steadyClock = Layer.fresh(SteadyClock.layer)

const serialization = RpcSerialization.layerSchemaBinary()

/** Connections to other runners. Without TCP_NODELAY a live event would be delayed by up to 100 milliseconds. */
const protocol: Layer.Layer<Runners.RpcClientProtocol, never, RpcSerialization.RpcSerialization> = Layer.effect(
  Runners.RpcClientProtocol,
  Effect.map(RpcSerialization.RpcSerialization, (serialization) => ({
    codecFor: serialization.codecFor,
    make: ({ host, port }) =>
      Effect.flatMap(NodeSocket.makeNet({ host, port, noDelay: true, openTimeout: 1_000, timeout: 5_500 }), (socket) =>
        RpcClient.makeProtocolSocket().pipe(
          Effect.provideService(Socket, socket),
          Effect.provideService(RpcSerialization.RpcSerialization, serialization)
        )
      )
  }))
)
