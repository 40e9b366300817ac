/**
 * The prompt of a turn: built by the pipeline, recorded as what is new in it.
 */

import * as Effect from "effect/Effect"
import type { Prepared } from "../../Hooks.ts"
import type { BudgetExhaustedError, PromptError } from "../../KernelError.ts"
import { type Prompt, type PromptContext, simple } from "../../PromptPipeline.ts"
import { RunContext } from "../agent/runContext.ts"
import { extensionError, guarded, isSound } from "../base/effects.ts"
import { commonPrefix } from "../base/lists.ts"
import { open, promptLog, State } from "../state/state.ts"
import { flush } from "./commit.ts"
import type { FlushError } from "../store/patientStore.ts"
import type { Draft } from "../run/drafts.ts"
import { outputSchema } from "../run/output.ts"
import { canAct, definitions, visibleProtocols, visibleSkills } from "../reply/permissions.ts"
import type { Run } from "../run/run.ts"
import * as Budget from "../run/sharedBudget.ts"
import { listingOf } from "../reply/skillOffer.ts"

/** Builds the prompt of the open turn. What was used to make it is counted for the tree. */
export const buildPrompt = Effect.fnUntraced(function* (
  run: Run
): Effect.fn.Return<Prompt, PromptError | BudgetExhaustedError | FlushError> {
  const { budget } = run
  // Foreign code may take its time, so others see what happened until now.
  if (isForeign(run)) yield* flush(run)
  // With an empty budget there is no model call to summarise for.
  const exhausted = Budget.exhausted(budget)
  if (exhausted !== undefined) return yield* exhausted
  const prompt = yield* run.restore(build(run))
  if (prompt.spent !== undefined) Budget.count(budget, Budget.spentOf(prompt.spent))
  return prompt
})

const build = Effect.fnUntraced(function* (run: Run): Effect.fn.Return<Prompt, PromptError> {
  const { agent } = run
  const instructions = yield* instructionsOf(run)
  const protocols = yield* visibleProtocols(run)
  const context: PromptContext = {
    agent,
    instructions,
    state: isForeign(run) ? open(new State(run.state)) : run.state,
    model: run.model,
    provider: run.provider,
    canAct: canAct(run, protocols),
    protocols: protocols.length === 0 ? none : protocols.map((protocol) => protocol.name),
    tools: yield* definitions(run),
    listing: run.isListed ? listingOf(run, yield* visibleSkills(run)) : undefined,
    outputSchema: outputSchema(agent),
    builder: run.builder,
    counter: run.counter,
    redactor: run.redactor,
    middleware: run.middleware
  }
  return yield* guarded("the prompt", () => run.pipeline.build(context), promptError)
})

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

/** Does code of a host have a part in the prompt: in its instructions, its sections, or the count of its tokens? */
const isForeign = ({ agent, counter, pipeline }: Run): boolean =>
  typeof agent.instructions !== "string" || pipeline !== simple || counter !== undefined

/** The event of a prompt, with what a hook changed in it. */
export const preparedDraft = (run: Run, prompt: Prompt, changed?: Prepared): Draft => {
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
