/**
 * A worker as a process. It prints a line for each run.
 */

import * as Cause from "effect/Cause"
import * as Effect from "effect/Effect"
import * as Exit from "effect/Exit"
import * as Option from "effect/Option"
import * as Random from "effect/Random"
import { hostname } from "node:os"
import { AgentMismatch, type KernelError, ToolNotFound } from "../../KernelError.ts"
import { randomId } from "../../kit/randomId.ts"
import { RunStore } from "../../RunStore.ts"
import * as RunWorker from "../../RunWorker.ts"
import type { SkillRegistry } from "../../SkillRegistry.ts"
import * as CliAgent from "../cliAgent.ts"
import * as Cluster from "./clusterProcess.ts"
import type { WorkerFlags } from "../commands/workerFlags.ts"
import { Codes, CommandFailed, failed } from "../exit.ts"
import { Screen } from "../screen.ts"
import * as Settings from "../settings.ts"
import * as Store from "../storeFlag.ts"
import * as Text from "../terminalText.ts"

/**
 * Works until it is interrupted. With `once` it works until there is nothing to do, and fails if a run failed or waits.
 */
export const work = Effect.fnUntraced(function* (flags: Settings.Settings, options: WorkerFlags) {
  const screen = yield* Screen
  const store = yield* Store.openNamed(options)
  const { agents, kernel } = yield* CliAgent.make(flags, store, { names: options.agentName })
  const names = agents.map(({ name }) => name)
  const write = (runId: string, text: string, tag: string) =>
    screen.out(options.json ? `${Text.json({ runId, end: tag, text })}\n` : `${Text.flat(runId)}  ${text}\n`)
  const codes = new Map<string, number>()
  const common: Omit<RunWorker.Options<SkillRegistry>, "agents"> = {
    // Two containers may have the same host name.
    workerId: `${hostname()}-${randomId(yield* Random.Random)}`,
    concurrency: options.concurrency,
    lease: `${options.lease} seconds`,
    resume: Effect.fnUntraced(function* (head) {
      const own = agents.find(({ name }) => name === head.agent) ?? agents[0]
      const state = Option.getOrUndefined(yield* RunStore.use((runs) => runs.load(head.runId)))
      if (state !== undefined && CliAgent.isStandIn(state, flags)) {
        return yield* new AgentMismatch({ runId: head.runId, agent: state.agent, given: "a stand-in" })
      }
      const missing = own && (yield* CliAgent.missingSkill(flags, own, head.runId))
      return missing === undefined ? { context: Settings.contextOf(flags) } : yield* new ToolNotFound({ name: missing })
    }),
    onRun: ({ runId }, exit) =>
      Effect.sync(() => {
        if (options.once) codes.set(runId, codeOf(exit))
        write(runId, endOf(exit), tagOf(exit))
      })
  }
  yield* Effect.gen(function* () {
    const withPrograms = yield* CliAgent.programs(flags)
    const settings = { ...common, agents: agents.map(withPrograms) }
    if (options.cluster) return yield* Cluster.serve(settings, options)
    if (!options.once) {
      screen.progress(`waiting for runs of ${names.map((name) => Text.excerpt(name, 40)).join(", ")}\n`)
      return yield* RunWorker.run(settings)
    }
    yield* RunWorker.runOnce(settings)
    const ends = [...codes.values()]
    if (ends.includes(Codes.failed)) return yield* failed("a run failed")
    if (ends.includes(Codes.paused)) {
      return yield* new CommandFailed({ code: Codes.paused, reason: "a run waits for a person" })
    }
  }).pipe(Effect.scoped, Effect.provide(kernel))
})

const codeOf = (exit: Exit.Exit<unknown, KernelError>): number => {
  if (Exit.isSuccess(exit)) return Codes.done
  const error = Option.getOrUndefined(Exit.findErrorOption(exit))
  return error?._tag === "RunPaused" ? Codes.paused : Codes.failed
}

const tagOf = (exit: Exit.Exit<unknown, KernelError>): string => {
  if (Exit.isSuccess(exit)) return "completed"
  if (Cause.hasInterruptsOnly(exit.cause)) return "released"
  return Option.getOrUndefined(Exit.findErrorOption(exit))?._tag ?? "defect"
}

const endOf = (exit: Exit.Exit<unknown, KernelError>): string => {
  if (Exit.isSuccess(exit)) return "completed"
  if (Cause.hasInterruptsOnly(exit.cause)) return "released"
  const error = Cause.squash(exit.cause)
  if (error instanceof ToolNotFound) return CliAgent.missing(error.name)
  if (error instanceof AgentMismatch) return CliAgent.unnamed(error.agent)
  return Text.excerpt(error instanceof Error ? error.message : String(error), 300)
}
