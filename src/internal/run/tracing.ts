/**
 * Decides whether a run is traced.
 */

import type * as Context from "effect/Context"
import { TracerKey } from "effect/Tracer"
import { make, Telemetry, type TelemetryShape } from "../../Telemetry.ts"
import { referenceOf } from "../base/foreignCode.ts"

/**
 * Returns the telemetry that was provided, the fiber's before the kernel's. Without any, runs are traced if the fiber
 * has a Tracer, without their contents.
 */
export const telemetryOf = (
  built: Context.Context<never>,
  current: Context.Context<never>
): TelemetryShape | undefined => {
  const isProvided = current.mapUnsafe.has(Telemetry.key) || built.mapUnsafe.has(Telemetry.key)
  if (isProvided || !current.mapUnsafe.has(TracerKey)) return referenceOf(built, current, Telemetry)
  standard ??= make()
  return standard
}

let standard: TelemetryShape | undefined
