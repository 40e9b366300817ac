/**
 * Layers that are closed in time, even if something that they hold does not respond: a database behind a cut cable, for
 * instance, never answers the statements that are to finish first.
 */

import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Scope from "effect/Scope"
import { inTime } from "./foreignCode.ts"

/** Wraps a layer so that closing it takes at most `limit`. Finalizers that take longer are left behind, with a warning. */
export const closedInTime = <A, E, R>(
  layer: Layer.Layer<A, E, R>,
  name: string,
  limit: Duration.Input
): Layer.Layer<A, E, R> =>
  Layer.fromBuildMemo((memoMap, scope) => {
    const own = Scope.makeUnsafe()
    const late = () => Effect.logWarning(`${name} did not close in time and is left behind`)
    return Effect.andThen(
      Scope.addFinalizerExit(scope, (exit) => inTime(Scope.close(own, exit), limit, late)),
      Layer.buildWithMemoMap(layer, memoMap, own)
    )
  })
