/**
 * Builds the prompt of a turn with the pipeline, and records the part that is new.
 */

import * as Effect from "effect/Effect"
import type { Prepared } from "../../Hooks.ts"
import type { PromptError } from "../../KernelError.ts"
import { type Prompt, type PromptContext, simple } from "../../PromptPipeline.ts"
import { RunContext } from "../agent/team.ts"
import { guarded } from "../../kit/foreignCode.ts"
import { extensionError, isSound } from "../errors/extensionError.ts"
import { commonPrefix } from "../../kit/lists.ts"
import { State, open, promptLog, turnLog } from "../state/state.ts"
import { ask, hookArgs, obey } from "../run/askHooks.ts"
import { flush, record } from "../run/commit.ts"
import type { Draft } from "../run/publish.ts"
import { outputSchema } from "../run/conclude.ts"
import { canAct, offerOf } from "./permissions.ts"
import { type Offer, type PrepareError, type Run, carry, drop } from "../run/run.ts"
import * as Budget from "../run/treeBudget.ts"

/** Builds the prompt of the open turn, runs its hook and records it. */
export function* preparePrompt(run: Run): Effect.fn.Return<void, PrepareError> {
  // Foreign code may be slow, so pending events are published first.
  if (isForeign(run)) yield* flush(run)
  // Without budget for a model call, a summary would be wasted.
  const exhausted = Budget.exhausted(run.budget)
  if (exhausted !== undefined) return yield* exhausted
  const { instructions } = run.agent
  if (typeof instructions !== "string") yield* letConsumerAct(run)
  const text = typeof instructions === "string" ? instructions : yield* run.restore(evaluated(run, instructions))
  const skills = yield* run.restore(run.skills.all)
  const offer = yield* offerOf(run, skills, yield* run.restore(run.protocols.all))
  const prompt = unchanged(run, offer) ?? (yield* run.restore(build(run, text, offer)))
  if (isSteady(run)) run.prompt = { offer, context: run.state.context, prompt }
  // Building the prompt may have used a model.
  if (prompt.spent !== undefined) Budget.count(run.budget, Budget.spentOf(prompt.spent))
  const hook = run.hooks.onTurnPrepared
  if (hook === undefined) return record(run, preparedDraft(run, offer, prompt))
  // If the hook stops the run, the usage is stored with that record.
  if (prompt.spent !== undefined) carry(run, { spent: prompt.spent })
  const prepared = { ...prompt, messages: prompt.messages ?? run.state.prompt }
  const { control, value } = yield* ask(run, "onTurnPrepared", () => hook(hookArgs(run, { prepared })))
  if (control !== undefined && control.type !== "continue") return yield* obey(run, control)
  drop(run, "spent")
  record(run, preparedDraft(run, offer, prompt, value))
}

/** Lets the consumer of the event stream act on the last turn, which may change the instructions of the next one. */
function* letConsumerAct({ isIdle }: Run): Effect.fn.Return<void> {
  for (let pauses = 0; pauses < mostPauses && !isIdle(); pauses++) yield* Effect.yieldNow
}

/** How often a run yields to its consumer. One that waits for something else holds no run up. */
const mostPauses = 64

/** Returns the prompt of the turn before if nothing that it was built from has changed. */
const unchanged = ({ prompt, state }: Run, offer: Offer): Prompt | undefined =>
  prompt?.offer === offer && prompt.context === state.context ? prompt.prompt : undefined

const build = (run: Run, instructions: string, offer: Offer): Effect.Effect<Prompt, PromptError> => {
  const { agent, state } = run
  const { listing, spoken, tools } = offer
  const context: PromptContext = {
    agent,
    instructions,
    state: isForeign(run) ? open(new State(state)) : state,
    model: run.model,
    provider: run.provider,
    canAct: canAct(run, spoken),
    protocols: spoken.map((protocol) => protocol.name),
    tools,
    listing,
    outputSchema: outputSchema(agent),
    builder: run.builder,
    counter: run.counter,
    redactor: run.redactor,
    middleware: run.middleware
  }
  return guarded("the prompt", () => run.pipeline.build(context), promptError)
}

/** Returns whether a prompt depends only on the offer and the context of the run, not on its conversation. */
const isSteady = (run: Run): boolean => !isForeign(run) && run.agent.contextWindow === undefined

const evaluated = ({ state }: Run, instructions: Effect.Effect<string>): Effect.Effect<string, PromptError> =>
  guarded(
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

/**
 * Returns what the model reads differently from the last turn of the same agent: after a deployment the run continues
 * with other instructions, skills or schemas.
 */
const changesOf = ({ state }: Run, system: string | null, tools: ReadonlyArray<string>, isOther: boolean) => {
  const last = turnLog(state).last()
  if (last === undefined || state.handoff?.turn === last.turn + 1) return none
  const isSame = tools.length === last.tools.length && tools.every((name, index) => name === last.tools[index])
  const skills = isSame && tools.length > 0 ? ("schemas" as const) : ("skills" as const)
  // A journal of an earlier format has no digest.
  const isKnown = state.offered !== undefined || !isSame
  return [...(system === state.system ? none : ["instructions" as const]), ...(isOther && isKnown ? [skills] : none)]
}

/** Returns the event of a prompt, with the changes of a hook. */
const preparedDraft = (run: Run, { digest }: Offer, prompt: Prompt, changed?: Prepared): Draft => {
  const { spent } = prompt
  const { messages, system } = changed ?? prompt
  const tools = prompt.tools.length === 0 ? none : prompt.tools.map((tool) => tool.name)
  const isOther = digest !== (run.state.offered ?? 0)
  const changes = changesOf(run, system, tools, isOther)
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
    ...(args && { args }),
    prompt: system === run.state.system ? { base, append } : { base, system, append },
    tools,
    ...(isOther ? { offered: digest } : {}),
    ...(changes.length === 0 ? {} : { changed: changes }),
    ...(spent && { spent })
  }
}
