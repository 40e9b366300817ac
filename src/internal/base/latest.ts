/**
 * What something is now and becomes, for whoever keeps up with it.
 */

import * as Effect from "effect/Effect"
import * as PubSub from "effect/PubSub"
import type * as Scope from "effect/Scope"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"

/**
 * A value now and whenever it changed, until the scope closes. Of more than 16 that wait for a slow reader, the oldest
 * are dropped.
 */
export const latest = <A>(
  ref: SubscriptionRef.SubscriptionRef<A>
): Effect.Effect<Stream.Stream<A>, never, Scope.Scope> =>
  Effect.as(
    Effect.addFinalizer(() => PubSub.shutdown(ref.pubsub)),
    Stream.buffer(SubscriptionRef.changes(ref), { capacity: 16, strategy: "sliding" })
  )
