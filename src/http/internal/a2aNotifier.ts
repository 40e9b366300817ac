/**
 * Sends push notifications: follows each task that has a configuration, and posts its changes to the address in it.
 *
 * A notification is sent at least once. After a restart, a task is followed from the last rest its receiver was notified
 * of.
 */

import type * as Context from "effect/Context"
import * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import type * as Fiber from "effect/Fiber"
import * as FiberMap from "effect/FiberMap"
import type * as HttpClient from "effect/http/HttpClient"
import * as HttpClientRequest from "effect/http/HttpClientRequest"
import * as Schedule from "effect/Schedule"
import * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import { type Json, type JsonObject, jsonObject } from "../../kit/json.ts"
import { logText } from "../../kit/text.ts"
import { isRest, type RunEvent } from "../../RunEvent.ts"
import type { RunHead } from "../../RunStore.ts"
import { type HttpProblem, Invalid, NotFound, TooMany } from "../HttpProblem.ts"
import type { CallerRuns, ServedRuns } from "../ServedRuns.ts"
import { A2aFold } from "./a2aFold.ts"
import * as Older from "./a2aOlder.ts"
import { headersOf, type PushConfig } from "./a2aPush.ts"
import * as Logs from "./a2aPushLog.ts"
import * as Tasks from "./a2aTask.ts"
import { type Places, places } from "./places.ts"
import * as Names from "./runNames.ts"

/** The push notifications of a server. */
export interface Notifier {
  /** Fails for an address to which nothing is sent. */
  readonly check: (config: PushConfig) => Effect.Effect<void, HttpProblem>
  /**
   * Stores a configuration of a task, and notifies its receiver of what happens after a revision. Default: the current
   * one.
   */
  readonly set: (
    runs: CallerRuns,
    runId: string,
    config: PushConfig,
    after?: number
  ) => Effect.Effect<void, HttpProblem>
  readonly list: (runs: CallerRuns, runId: string) => Effect.Effect<ReadonlyArray<PushConfig>, HttpProblem>
  readonly remove: (runs: CallerRuns, runId: string, id: string) => Effect.Effect<void, HttpProblem>
}

/** The tasks whose changes are sent. */
interface Options {
  readonly agent: string
  readonly urlOf: Tasks.UrlOf
  /** Further origins that may be notified, such as one inside of the network of the server. */
  readonly origins: ReadonlyArray<string>
}

/** Creates the notifier of a server, which continues the notifications of the process before. */
export const make = Effect.fnUntraced(function* (
  served: ServedRuns["Service"],
  { agent, origins, urlOf }: Options
): Effect.fn.Return<Notifier, never, Scope.Scope> {
  const Guarded = yield* Effect.promise(() => import("./guardedHttp.ts"))
  const resources: Resources = {
    client: yield* Guarded.make(origins),
    following: yield* FiberMap.make<string>(),
    places: places(limits, "wait until other tasks with push notifications are over"),
    services: yield* Effect.context<never>(),
    urlOf
  }
  const continued = Effect.gen(function* () {
    const newest = yield* served.heads({ agent, limit: limits.connections })
    const open = yield* served.heads({ agent, limit: limits.connections, status: unfinished })
    for (const head of new Map([...newest, ...open].map((head) => [head.runId, head])).values()) {
      yield* Effect.catch(resume(resources, served.ownerOf(head), head), warn(head.runId))
    }
  })
  yield* Effect.forkScoped(Effect.catch(continued, warn("of all tasks")))
  return {
    check: ({ url }) =>
      Guarded.reaches(origins, url, "https:") ? Effect.void : Effect.fail(new Invalid({ detail: unreachable })),
    set: (runs, name, config, after) => set(resources, runs, name, config, after),
    list: (runs, name) =>
      withLog(runs, name, ({ read }) => Effect.map(read, (known) => known.map(({ config }) => config))),
    remove: (runs, name, id) =>
      withLog(runs, name, (log) =>
        Effect.flatMap(log.read, (known) =>
          known.some(({ config }) => config.id === id) ? log.append({ type: "removed", id }) : Effect.void
        )
      )
  }
})

/** The client that sends, and the fibers that follow tasks, by the task and the configuration. */
interface Resources {
  readonly client: HttpClient.HttpClient
  readonly following: FiberMap.FiberMap<string>
  readonly places: Places
  readonly services: Context.Context<never>
  readonly urlOf: Tasks.UrlOf
}

const set = Effect.fnUntraced(function* (
  resources: Resources,
  runs: CallerRuns,
  name: string,
  config: PushConfig,
  given: number | undefined
): Effect.fn.Return<void, HttpProblem> {
  const { revision, runId } = yield* ownHead(runs, name)
  const scope = yield* Scope.make()
  const stored = Effect.gen(function* () {
    yield* resources.places(Names.keyOf(runs.caller))
    const log = Logs.make(yield* runs.mediaOf(runId), runId)
    const before = yield* log.read
    if (before.length >= mostConfigs && before.every((one) => one.config.id !== config.id)) {
      return yield* new TooMany({ detail: `a task has at most ${mostConfigs} push notification configs` })
    }
    yield* log.append({ type: "set", config, after: given ?? revision })
    const subscription = (yield* log.read).find((one) => one.config.id === config.id)
    if (subscription !== undefined) yield* begin(resources, { runs, runId, log, subscription }, scope)
  })
  yield* within(scope, stored)
}, Effect.uninterruptible)

/** Continues the notifications about a run that an earlier process began. */
const resume = Effect.fnUntraced(function* (
  resources: Resources,
  runs: CallerRuns,
  head: RunHead
): Effect.fn.Return<void, HttpProblem> {
  const { runId } = head
  for (const subscription of yield* withLog(runs, runId, ({ read }) => read)) {
    const isNotified = Tasks.isOver(head) && subscription.after >= head.revision
    if (isNotified || (yield* FiberMap.has(resources.following, keyOf(runId, subscription.config.id)))) continue
    const scope = yield* Scope.make()
    const begun = Effect.gen(function* () {
      yield* resources.places(Names.keyOf(runs.caller))
      const log = Logs.make(yield* runs.mediaOf(runId), runId)
      yield* begin(resources, { runs, runId, log, subscription }, scope)
    })
    yield* within(scope, begun)
  }
}, Effect.uninterruptible)

/** Runs an effect in a scope, which stays open unless the effect fails. */
const within = <A, E>(scope: Scope.Closeable, effect: Effect.Effect<A, E, Scope.Scope>): Effect.Effect<A, E> =>
  effect.pipe(
    Effect.provideService(Scope.Scope, scope),
    Effect.onError(() => Scope.close(scope, Exit.void))
  )

/** Follows a task for a receiver, and holds the media of its run as long. Holds nothing of the current request. */
const begin = ({ client, following, services, urlOf }: Resources, task: Notified, scope: Scope.Closeable) => {
  const followed = Effect.ensuring(Effect.interruptible(follow(client, urlOf, task)), Scope.close(scope, Exit.void))
  const key = keyOf(task.runId, task.subscription.config.id)
  return Effect.updateContext<Fiber.Fiber<void>, never, never, never>(
    FiberMap.run(following, key, followed),
    () => services
  )
}

/** Uses the log of a task of the caller. */
const withLog = <A>(runs: CallerRuns, name: string, use: (log: Logs.PushLog) => Effect.Effect<A, HttpProblem>) =>
  Effect.scoped(
    Effect.gen(function* () {
      const { runId } = yield* ownHead(runs, name)
      return yield* use(Logs.make(yield* runs.mediaOf(runId), runId))
    })
  )

const unfinished = ["queued", "running", "waiting", "interrupted"] as const

/** The tasks that one process follows: those of one caller, and of all. */
const limits = { followers: 250, connections: 1_000 }

const mostConfigs = 16

const unreachable = "push notifications are sent to public hosts over https, and to the origins that the server names"

const keyOf = (runId: string, configId: string): string => JSON.stringify([runId, configId])

/** Returns the head of a run of the caller. Those who may see it, but do not own it, do not see its configurations. */
const ownHead = (runs: CallerRuns, name: string): Effect.Effect<RunHead, HttpProblem> =>
  Effect.filterOrFail(
    runs.head(name),
    ({ runId }) => runId.startsWith(runs.idOf("")),
    () => new NotFound({ what: "run", id: name })
  )

/** A task that is followed for one receiver. */
interface Notified {
  readonly runs: CallerRuns
  readonly runId: string
  readonly log: Logs.PushLog
  readonly subscription: Logs.Subscription
}

/** Notifies a receiver until the task is over or its configuration was removed or replaced. */
const follow = (client: HttpClient.HttpClient, urlOf: Tasks.UrlOf, task: Notified): Effect.Effect<void> => {
  const { log, runId, runs, subscription } = task
  const { config, place } = subscription
  let { after } = subscription
  const once = Effect.suspend(() => {
    const fold = new A2aFold(Tasks.idsOf(runs, runId), after, (id) => urlOf(runId, id))
    /** Returns whether the task is followed further. */
    const notify = Effect.fnUntraced(function* (event: RunEvent) {
      const updates = fold.push(event).filter(isWhole)
      if (updates.length === 0) return !Tasks.isEnd(event)
      const known = (yield* log.read).find((one) => one.config.id === config.id)
      if (known?.place !== place) return false
      for (const update of updates) yield* send(client, task, yield* bodyOf(task, urlOf, update))
      if ("revision" in event) after = event.revision
      // Without the entry, the next server repeats what was sent.
      if (isRest(event)) yield* Effect.ignore(log.append({ type: "notified", id: config.id, after }))
      return !Tasks.isEnd(event)
    })
    return Tasks.eventsOf(runs, runId).pipe(
      Stream.mapEffect(notify),
      Stream.takeWhile((continues) => continues),
      Stream.runDrain
    )
  })
  // The store may be away for a while. A server that closes leaves the rest to the next one.
  return once.pipe(Effect.retry({ times: 5, schedule: Schedule.exponential("1 second") }), Effect.catch(warn(runId)))
}

/** Returns false for a piece of an answer: the whole answer follows. */
const isWhole = ({ artifactUpdate }: JsonObject): boolean =>
  artifactUpdate === undefined || jsonObject(artifactUpdate)["lastChunk"] === true

/** Returns the body of a notification: the update, or in version 0.3 the task. */
const bodyOf = ({ runId, runs, subscription }: Notified, urlOf: Tasks.UrlOf, update: JsonObject) =>
  subscription.config.version === "1.0"
    ? Effect.succeed(update)
    : Effect.map(Tasks.taskOf(runs, runId, urlOf), (task) => Older.resultOf({ task }))

/** Posts a notification. One that its receiver does not accept is given up and logged, without what is secret. */
const send = (client: HttpClient.HttpClient, { runId, subscription: { config } }: Notified, body: Json) => {
  const type = config.version === "1.0" ? "application/a2a+json" : "application/json"
  const request = HttpClientRequest.post(config.url).pipe(
    HttpClientRequest.setHeaders(headersOf(config)),
    HttpClientRequest.bodyText(JSON.stringify(body), type)
  )
  const sent = Effect.scoped(client.execute(request)).pipe(
    Effect.timeout(Duration.seconds(10)),
    Effect.mapError(() => ({ reason: "it does not respond", isPassing: true })),
    Effect.flatMap(({ status }) =>
      status < 300
        ? Effect.void
        : Effect.fail({ reason: `it responded with ${status}`, isPassing: status >= 500 || passing.has(status) })
    )
  )
  return sent.pipe(
    Effect.retry({ times: 3, schedule: Schedule.exponential("1 second"), while: ({ isPassing }) => isPassing }),
    Effect.catch(({ reason }) => warn(runId)({ message: `${URL.parse(config.url)?.host}: ${reason}` }))
  )
}

const passing = new Set([408, 425, 429])

const warn =
  (runId: string) =>
  ({ message }: { readonly message: string }): Effect.Effect<void> =>
    Effect.logWarning(`push notifications ${runId}`, logText(message))
