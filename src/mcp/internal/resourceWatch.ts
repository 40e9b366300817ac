/** Watches resources of a server: subscribes to them in every session, as long as there is a watcher. */

import type { McpClientError } from "effect/ai/McpClientError"
import * as Effect from "effect/Effect"
import * as PubSub from "effect/PubSub"
import * as Stream from "effect/Stream"
import { isRecord } from "../../kit/json.ts"
import type { McpError } from "../../KernelError.ts"

/** Sends a request in a session. */
type Send = (method: string, params: { readonly uri: string }) => Effect.Effect<unknown, McpClientError>

export interface ResourceWatch {
  /** Takes a notification of the server. */
  readonly receive: (params: unknown) => void
  /** Subscribes to all watched resources in a new session. A resource that the server refuses is not watched. */
  readonly renew: (send: Send) => Effect.Effect<void>
  /** Emits after every change, while the stream is read. */
  readonly watch: (
    uri: string,
    subscribe: Effect.Effect<unknown, McpError>,
    unsubscribe: Effect.Effect<unknown, McpError>
  ) => Stream.Stream<void, McpError>
}

export const make: Effect.Effect<ResourceWatch> = Effect.map(
  // A slow watcher misses no resource, since several changes of a resource are merged.
  PubSub.sliding<string>(1_024),
  (updates) => {
    const watchers = new Map<string, number>()
    const count = (uri: string, change: number) => {
      const left = (watchers.get(uri) ?? 0) + change
      if (left > 0) watchers.set(uri, left)
      else watchers.delete(uri)
      return left
    }
    return {
      receive: (params) => {
        const uri = isRecord(params) ? params["uri"] : undefined
        if (typeof uri === "string" && watchers.has(uri)) PubSub.publishUnsafe(updates, uri)
      },
      renew: (send) =>
        Effect.forEach([...watchers.keys()], (uri) => Effect.ignore(send("resources/subscribe", { uri })), {
          discard: true
        }),
      watch: (uri, subscribe, unsubscribe) =>
        Stream.unwrap(
          Effect.gen(function* () {
            const changed = yield* PubSub.subscribe(updates)
            yield* Effect.acquireRelease(
              Effect.suspend(() =>
                count(uri, 1) === 1 ? Effect.tapError(subscribe, () => Effect.sync(() => count(uri, -1))) : Effect.void
              ),
              () => Effect.suspend(() => (count(uri, -1) === 0 ? Effect.ignore(unsubscribe) : Effect.void))
            )
            return Stream.fromSubscription(changed).pipe(
              Stream.filter((other) => other === uri),
              Stream.map(() => undefined)
            )
          })
        )
    }
  }
)
