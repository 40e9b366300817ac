/**
 * Builds the prompt of a turn with the pipeline, and records the part that is new.
 */

import * as Effect from "effect/Effect"
import type { Prepared } from "../../Hooks.ts"
import type { PromptError } from "../../KernelError.ts"
import { type Prompt, type PromptContext, simple } from "../../PromptPipeline.ts"
import type { AnyProtocol } from "../../Protocol.ts"
import { RunContext } from "../agent/team.ts"
import { guarded } from "../../kit/foreignCode.ts"
import { extensionError, isSound } from "../errors/extensionError.ts"
import { commonPrefix } from "../../kit/lists.ts"
import { State, open, promptLog } from "../state/state.ts"
import { ask, hookArgs, obey } from "../run/askHooks.ts"
import { flush, record } from "../run/commit.ts"
import type { Draft } from "../run/publish.ts"
import { outputSchema } from "../run/conclude.ts"
import { canAct, definitions, listingOf, visibleProtocols, visibleSkills } from "./permissions.ts"
import { type PrepareError, type Run, carry, drop } from "../run/run.ts"
import * as Budget from "../run/sharedBudget.ts"

/** Builds the prompt of the open turn, runs its hook and records it. */
export const preparePrompt = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<void, PrepareError> {
  // Foreign code may be slow, so pending events are published first.
  if (isForeign(run)) yield* flush(run)
  // Without budget for a model call, a summary would be wasted.
  const exhausted = Budget.exhausted(run.budget)
  if (exhausted !== undefined) return yield* exhausted
  const prompt = yield* run.restore(build(run))
  // Building the prompt may have used a model.
  if (prompt.spent !== undefined) Budget.count(run.budget, Budget.spentOf(prompt.spent))
  const hook = run.hooks.onTurnPrepared
  if (hook === undefined) return record(run, preparedDraft(run, prompt))
  // If the hook stops the run, the usage is stored with that record.
  if (prompt.spent !== undefined) carry(run, { spent: prompt.spent })
  const prepared = { ...prompt, messages: prompt.messages ?? run.state.prompt }
  const { control, value } = yield* ask(run, "onTurnPrepared", () => hook(hookArgs(run, { prepared })))
  if (control !== undefined && control.type !== "continue") return yield* obey(run, control)
  drop(run, "spent")
  record(run, preparedDraft(run, prompt, value))
})

const build = (run: Run): Effect.Effect<Prompt, PromptError> =>
  Effect.flatMapEager(instructionsOf(run), (instructions) =>
    Effect.flatMap(visibleProtocols(run), (protocols) =>
      Effect.flatMap(definitions(run), (tools) =>
        run.isListed
          ? Effect.flatMap(visibleSkills(run), (skills) =>
              promptOf(run, { instructions, protocols, tools, listing: listingOf(run, skills) })
            )
          : promptOf(run, { instructions, protocols, tools, listing: undefined })
      )
    )
  )

/** The instructions, tools, listing and protocols of a turn. */
interface Offer extends Pick<PromptContext, "instructions" | "tools" | "listing"> {
  readonly protocols: ReadonlyArray<AnyProtocol>
}

const promptOf = (run: Run, { instructions, listing, protocols, tools }: Offer): Effect.Effect<Prompt, PromptError> => {
  const context: PromptContext = {
    agent: run.agent,
    instructions,
    state: isForeign(run) ? open(new State(run.state)) : run.state,
    model: run.model,
    provider: run.provider,
    canAct: canAct(run, protocols),
    protocols: protocols.length === 0 ? none : protocols.map((protocol) => protocol.name),
    tools,
    listing,
    outputSchema: outputSchema(run.agent),
    builder: run.builder,
    counter: run.counter,
    redactor: run.redactor,
    middleware: run.middleware
  }
  return guarded("the prompt", () => run.pipeline.build(context), promptError)
}

const instructionsOf = ({ agent: { instructions }, state }: Run): Effect.Effect<string, PromptError> =>
  typeof instructions === "string"
    ? Effect.succeed(instructions)
    : guarded(
        "instructions",
        () => Effect.provideService(Effect.map(instructions, String), RunContext, state.context),
        (error) => extensionError("instructions", error)
      )

const promptError = (error: unknown): PromptError => (isPromptError(error) ? error : extensionError("prompt", error))

const isPromptError = (error: unknown): error is PromptError => isSound(error) && promptErrors.has(error._tag)

const promptErrors: ReadonlySet<string> = new Set<PromptError["_tag"]>([
  "ContextWindowExceeded",
  "TemplateError",
  "SkillPackInvalid",
  "ProviderError",
  "LimitExceeded",
  "StoreError",
  "ExtensionFailed",
  "MiddlewareTermination"
])

const none: ReadonlyArray<never> = []

/** Returns whether code of the host builds part of the prompt: its instructions, its sections or its token count. */
const isForeign = ({ agent, counter, pipeline }: Run): boolean =>
  typeof agent.instructions !== "string" || pipeline !== simple || counter !== undefined

/** Returns the event of a prompt, with the changes of a hook. */
const preparedDraft = (run: Run, prompt: Prompt, changed?: Prepared): Draft => {
  const { spent, tools } = prompt
  const { messages, system } = changed ?? prompt
  const base = messages === undefined ? promptLog(run.state).length : commonPrefix(run.state.prompt, messages)
  const append = messages === undefined || base === messages.length ? none : messages.slice(base)
  const model = changed?.model
  const generation = changed?.generation ?? prompt.generation
  const { cacheBreakpoints } = prompt
  const args = (model ?? generation ?? cacheBreakpoints) && {
    ...(model && { model }),
    ...(generation && { generation }),
    ...(cacheBreakpoints && { cacheBreakpoints })
  }
  return {
    type: "turn_prepared",
    model: model?.id ?? run.model.id,
    dialect: run.agent.dialect,
    prompt: system === run.state.system ? { base, append } : { base, append, system },
    tools: tools.length === 0 ? none : tools.map((tool) => tool.name),
    ...(args && { args }),
    ...(spent && { spent })
  }
}
