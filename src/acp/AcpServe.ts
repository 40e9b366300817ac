/**
 * Serves an agent to editors over the Agent Client Protocol: Zed, JetBrains, Neovim, Emacs and others.
 *
 * Each session is a conversation whose prompts are stored runs, so the editor can load it again after a restart. The
 * person sees text, thinking, plans and calls while they happen, and decides about the calls that a policy asks about.
 * A prompt that is cancelled cancels its run, and so does an editor that leaves.
 *
 * @since 0.1.0
 */

import * as Effect from "effect/Effect"
import * as Layer from "effect/Layer"
import { LogToStderr } from "effect/Logger"
import type * as Scope from "effect/Scope"
import { Stdio } from "effect/Stdio"
import type { Agent } from "../Agent.ts"
import type { JsonObject } from "../kit/json.ts"
import { flat, shorten } from "../kit/text.ts"
import type * as Kernel from "../Kernel.ts"
import { RunStore } from "../RunStore.ts"
import type { AnySkill } from "../Skill.ts"
import { AcpAgent } from "./internal/acpAgent.ts"
import { serve } from "./internal/acpPeer.ts"
import { AcpProblem, failed } from "./internal/acpProblem.ts"
import type { Editor, Mode, Opened, Terminal, TerminalOptions } from "./internal/acpTypes.ts"

export {
  /**
   * Fails when the editor refuses a request, does not answer, or has left.
   *
   * @category errors
   * @since 0.1.0
   */
  AcpProblem
}

export type {
  /**
   * What an editor does for its agent. A function is absent if the editor does not offer it. Paths are absolute.
   *
   * @category models
   * @since 0.1.0
   */
  Editor,
  /**
   * A program that runs in a terminal of the editor.
   *
   * @category models
   * @since 0.1.0
   */
  Terminal,
  /**
   * A program to run in a terminal.
   *
   * @category models
   * @since 0.1.0
   */
  TerminalOptions,
  /**
   * A mode that the person can choose, such as to plan before anything is changed.
   *
   * @category models
   * @since 0.1.0
   */
  Mode,
  /**
   * A session that an editor opened.
   *
   * @category models
   * @since 0.1.0
   */
  Opened
}

/**
 * Options of a served agent.
 *
 * @category models
 * @since 0.1.0
 */
export interface Options<S extends AnySkill<unknown>, R, E, In> {
  readonly agent: Agent<unknown, S, R, unknown>
  /**
   * Builds the kernel of a session, and the other services of the agent, such as the workspace in the folder of the
   * session. They live until the session is closed.
   */
  readonly layer: (session: Opened) => Layer.Layer<Kernel.Kernel | Kernel.Needs<R>, E, In>
  /** The modes of the agent. The first one is chosen in a new session. Default: none. */
  readonly modes?: ReadonlyArray<Mode> | undefined
  /**
   * Returns what a person allows by "always" with a call: the call needs no question if all of it was allowed before.
   * Empty for a call that is always asked about. Default: the name of the call.
   */
  readonly similar?: ((name: string, input: JsonObject) => ReadonlyArray<string>) | undefined
  /** Default: `kernai`. */
  readonly name?: string | undefined
  /** Default: the version of kernai. */
  readonly version?: string | undefined
}

/**
 * Serves an agent on the standard streams of this process until the input ends. Logs go to the error stream.
 *
 * The sessions are runs of the `RunStore` in context, which the kernels of the sessions must share.
 *
 * @example
 * const program = AcpServe.stdio({ agent, layer: () => KernelLive }).pipe(Effect.scoped, Effect.provide(NodeStdio.layer))
 *
 * @category running
 * @since 0.1.0
 */
export const stdio = <S extends AnySkill<unknown>, R, E extends { readonly message: string }, In>(
  options: Options<S, R, E, In>
): Effect.Effect<void, never, RunStore | Stdio | In | Scope.Scope> =>
  Effect.gen(function* () {
    const runs = yield* RunStore
    const context = yield* Effect.context<In>()
    const { agent, layer, modes = [], name = "kernai", similar = (name) => [name], version = "0.1.0" } = options
    const services = (session: Opened) =>
      Layer.build(Layer.merge(layer(session), Layer.succeed(RunStore, runs))).pipe(
        Effect.provideContext(context),
        Effect.mapError(({ message }) => failed(shorten(flat(message), 400)))
      )
    const serving = { agent, modes, similar, services, info: { name, version } }
    yield* serve(yield* Stdio, (peer) => new AcpAgent(serving, peer))
  }).pipe(Effect.provideService(LogToStderr, true))
