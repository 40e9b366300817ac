/**
 * Keeps a prompt inside its window, and marks what may be cached.
 */

import * as Effect from "effect/Effect"
import { ContextWindowExceeded } from "../../KernelError.ts"
import type { Message } from "../../Message.ts"
import type { Compaction, Prompt, PromptContext } from "./promptTypes.ts"
import type { Expense } from "../../Usage.ts"
import { compact } from "./compaction.ts"
import * as KeptSummary from "./keptSummary.ts"
import { passedOver } from "../base/foreignCode.ts"
import { deep } from "../base/redact.ts"
import * as Tokens from "./tokenEstimate.ts"

/** The tokens of everything except the conversation. */
const around = ({ counter, tools }: PromptContext, system: string | null): Effect.Effect<number> =>
  Effect.map(Tokens.ofSystem(system, counter), (tokens) => tokens + Tokens.ofTools(tools))

/** Fails if the prompt does not fit the agent's window. The conversation does not change. */
export const fitted = Effect.fnUntraced(function* (
  context: PromptContext,
  system: string | null
): Effect.fn.Return<undefined, ContextWindowExceeded> {
  const { contextWindow, reservedOutputTokens } = context.agent
  if (contextWindow === undefined) return undefined
  const limit = contextWindow - reservedOutputTokens
  const conversation = yield* Tokens.ofMessages(context.state.prompt, context.counter)
  const estimated = (yield* around(context, system)) + conversation
  return estimated > limit ? yield* new ContextWindowExceeded({ estimated, limit }) : undefined
})

/**
 * Returns the conversation shortened if it fills its share of the window, or undefined if it may stay. A known summary
 * replaces the messages it covers, so only later messages are summarized.
 */
export const compacted = Effect.fnUntraced(function* <R>(
  context: PromptContext,
  system: string | null,
  { keep = 2, summarize, target = 0.5, trigger = 0.9 }: Compaction<R>
): Effect.fn.Return<Pick<Prompt, "messages" | "spent"> | undefined, ContextWindowExceeded, R> {
  const { agent, counter, model, recorded, redactor, state } = context
  const contextWindow = agent.contextWindow ?? model.contextWindow
  if (contextWindow === undefined) return undefined
  const beside = yield* around(context, system)
  const limit = contextWindow - agent.reservedOutputTokens - beside
  const now = yield* Tokens.ofMessages(state.prompt, counter)
  if (now <= limit * trigger) return undefined
  const told = KeptSummary.shortened(state.prompt)
  const size = told === undefined ? now : yield* Tokens.ofMessages(told, counter)
  const known = size < now ? told : undefined
  if (known !== undefined && size <= limit * trigger) return { messages: known }
  let spent: Expense | undefined
  const shorter = compact(known ?? state.prompt, {
    limit,
    target: Math.floor(limit * target),
    keep,
    pinned: state.input.at(-1),
    count: (message) => Tokens.ofMessage(message, counter),
    summarize:
      summarize &&
      ((messages) =>
        (recorded === undefined
          ? summarize(redactor === undefined ? messages : deep(messages, redactor.text), context)
          : Effect.succeed(recorded.summary)
        ).pipe(
          Effect.map((said) => {
            if (typeof said === "string") return said
            spent = said.spent
            return said.text
          }),
          Effect.catchCause((cause) => Effect.as(passedOver("a conversation was not summarized")(cause), ""))
        ))
  })
  // Between the trigger and the limit, shortening is optional.
  const patient =
    Math.min(now, size) <= limit
      ? Effect.catchTag(shorter, "ContextWindowExceeded", () => Effect.succeed(known))
      : shorter
  const messages = yield* Effect.mapError(
    patient,
    ({ estimated }) => new ContextWindowExceeded({ estimated: estimated + beside, limit: limit + beside })
  )
  return { ...(messages === undefined ? {} : { messages }), ...(spent === undefined ? {} : { spent }) }
})

/** The ends of this prompt and of the previous one: the text before both will be sent again. */
export const breakpoints = (messages: ReadonlyArray<Message>): ReadonlyArray<number> => {
  const last = messages.length - 1
  const before = messages.findLastIndex(({ role }) => role === "assistant") - 1
  return [before, last].filter((index) => index >= 0)
}
