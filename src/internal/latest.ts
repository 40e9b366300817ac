/**
 * What something is now and becomes, for whoever keeps up with it.
 *
 * @since 0.1.0
 */
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"

/** A value now and whenever it changed. Of more than 16 that wait for a slow reader, the oldest are dropped. */
export const latest = <A>(ref: SubscriptionRef.SubscriptionRef<A>): Stream.Stream<A> =>
  Stream.buffer(SubscriptionRef.changes(ref), { capacity: 16, strategy: "sliding" })
