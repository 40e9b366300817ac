/**
 * All protocols by block type (BP-81).
 *
 * Registration is scoped: a protocol leaves when its scope closes, also in the
 * middle of a run. A protocol keeps the services of the place it was registered
 * in; what the run brings wins.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { closeOver } from "./internal/base/effects.ts"
import { DefinitionInvalid, ToolNameConflict } from "./KernelError.ts"
import type { AnyProtocol, Services } from "./Protocol.ts"
import { problem } from "./Protocol.ts"

export { DefinitionInvalid, ToolNameConflict }

/**
 * What a registry does.
 *
 * @category models
 * @since 0.1.0
 */
export interface ProtocolRegistryShape {
  /** Adds a protocol until the scope closes. */
  readonly register: <R>(
    protocol: AnyProtocol<R>
  ) => Effect.Effect<void, ToolNameConflict | DefinitionInvalid, R | Scope.Scope>
  /** Tells whether a block type is a protocol's; null is nobody's. */
  readonly isRegistered: (name: string | null) => boolean
  /** The protocol of exactly this block type. */
  readonly find: (name: string) => Option.Option<AnyProtocol>
  /** Every protocol, as registered. */
  readonly all: Effect.Effect<ReadonlyArray<AnyProtocol>>
  /** Their block types, as registered. */
  readonly names: Effect.Effect<ReadonlyArray<string>>
}

/**
 * The protocols a run can speak.
 *
 * @category services
 * @since 0.1.0
 */
export class ProtocolRegistry extends Context.Service<ProtocolRegistry, ProtocolRegistryShape>()(
  "kernai/ProtocolRegistry"
) {}

/**
 * A registry of these protocols; it needs what they need.
 *
 * A name given twice fails with `ToolNameConflict`. A reserved or impossible
 * name is a mistake in code and dies with `DefinitionInvalid`.
 *
 * @category layers
 * @since 0.1.0
 */
export function layer<const Protocols extends ReadonlyArray<AnyProtocol<unknown>>>(
  ...protocols: Protocols
): Layer.Layer<ProtocolRegistry, ToolNameConflict, Services<Protocols[number]>>
export function layer(
  ...protocols: ReadonlyArray<AnyProtocol<unknown>>
): Layer.Layer<ProtocolRegistry, ToolNameConflict, unknown> {
  return Layer.effect(
    ProtocolRegistry,
    Effect.gen(function* () {
      const registry = make()
      for (const protocol of protocols) {
        yield* Effect.catchTag(registry.register(protocol), "DefinitionInvalid", Effect.die)
      }
      return registry
    })
  )
}

/**
 * The protocols an agent may speak: all of them without a list, else the listed ones, as registered (BP-78).
 *
 * @category combinators
 * @since 0.1.0
 */
export const visible = (
  protocols: ReadonlyArray<AnyProtocol>,
  listed: ReadonlyArray<string> | undefined
): ReadonlyArray<AnyProtocol> =>
  listed === undefined ? protocols : protocols.filter((protocol) => listed.includes(protocol.name))

const make = (): ProtocolRegistryShape => {
  const protocols = new Map<string, AnyProtocol>()

  const add = (protocol: AnyProtocol) =>
    Effect.suspend((): Effect.Effect<void, ToolNameConflict | DefinitionInvalid> => {
      const { name } = protocol
      const fault = problem(name)
      if (fault !== undefined) return Effect.fail(fault)
      if (protocols.has(name)) {
        return Effect.fail(new ToolNameConflict({ name, existing: "protocol", incoming: "protocol" }))
      }
      protocols.set(name, protocol)
      return Effect.void
    })

  return {
    register: <R>(protocol: AnyProtocol<R>) =>
      Effect.flatMap(Effect.context<R>(), (context) => {
        const provide = closeOver(context)
        const closed: AnyProtocol = {
          ...protocol,
          handle: (block, scope) => provide(protocol.handle(block, scope))
        }
        return Effect.acquireRelease(add(closed), () => Effect.sync(() => protocols.delete(closed.name)))
      }),
    isRegistered: (name) => name !== null && protocols.has(name),
    find: (name) => Option.fromUndefinedOr(protocols.get(name)),
    all: Effect.sync(() => Array.from(protocols.values())),
    names: Effect.sync(() => Array.from(protocols.keys()))
  }
}
