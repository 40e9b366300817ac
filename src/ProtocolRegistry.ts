/**
 * All protocols by block type.
 *
 * Registration is scoped: a protocol is removed when its scope closes, even during a run. A protocol keeps the services
 * of the place it was registered in; those of the run take precedence.
 *
 * @since 0.1.0
 */

import * as Context from "effect/Context"
import * as Effect from "effect/Effect"
import { dual } from "effect/Function"
import * as Layer from "effect/Layer"
import * as Option from "effect/Option"
import type * as Scope from "effect/Scope"
import { closeOver } from "./kit/foreignCode.ts"
import { DefinitionInvalid, ToolNameConflict } from "./KernelError.ts"
import type { AnyProtocol, Services } from "./Protocol.ts"
import { problem } from "./Protocol.ts"

export { DefinitionInvalid, ToolNameConflict }

/**
 * The service of `ProtocolRegistry`.
 *
 * @category models
 * @since 0.1.0
 */
export interface ProtocolRegistryShape {
  /** Adds a protocol until the scope closes. */
  readonly register: <R>(
    protocol: AnyProtocol<R>
  ) => Effect.Effect<void, ToolNameConflict | DefinitionInvalid, R | Scope.Scope>
  /** Returns the protocol with exactly this block type. */
  readonly find: (name: string) => Option.Option<AnyProtocol>
  /** All protocols, in order of registration. */
  readonly all: Effect.Effect<ReadonlyArray<AnyProtocol>>
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
 * Creates a registry of protocols, which requires their services.
 *
 * A repeated name fails with `ToolNameConflict`. A reserved or impossible name is a bug and dies with
 * `DefinitionInvalid`.
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
 * Returns the protocols an agent may use: all without a list, otherwise the listed ones.
 *
 * @category combinators
 * @since 0.1.0
 */
export const visible: {
  (listed: ReadonlyArray<string> | undefined): (protocols: ReadonlyArray<AnyProtocol>) => ReadonlyArray<AnyProtocol>
  (protocols: ReadonlyArray<AnyProtocol>, listed: ReadonlyArray<string> | undefined): ReadonlyArray<AnyProtocol>
} = /* @__PURE__ */ dual(
  2,
  (protocols: ReadonlyArray<AnyProtocol>, listed: ReadonlyArray<string> | undefined): ReadonlyArray<AnyProtocol> =>
    listed === undefined ? protocols : protocols.filter((protocol) => listed.includes(protocol.name))
)

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
    find: (name) => Option.fromUndefinedOr(protocols.get(name)),
    all: Effect.sync(() => Array.from(protocols.values()))
  }
}
