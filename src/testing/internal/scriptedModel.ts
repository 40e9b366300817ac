/**
 * A model that follows a script: the replies of the root run, and those of each task.
 *
 * The conversation of a call decides its reply: the input gives the task, and the earlier replies give the turn. So
 * parallel tasks, restarts and resumes get the right replies. The only state is a cache of counted messages.
 */

import type * as Duration from "effect/Duration"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import * as Stream from "effect/Stream"
import * as BlockParser from "../../BlockParser.ts"
import { ProviderError } from "../../KernelError.ts"
import type { Message } from "../../Message.ts"
import { commonPrefix } from "../../kit/lists.ts"
import * as Plan from "../../Plan.ts"
import type { ProviderShape } from "../../Provider.ts"
import type { FinishReason, StreamPart } from "../../StreamPart.ts"

/** One reply: a text, a text with its delay and usage, or the error of the call. */
export type Line = string | ProviderError | Spoken

/** A reply with its delay, usage and reason. */
interface Spoken {
  readonly text: string
  /** The time before it arrives. */
  readonly delay?: Duration.Input | undefined
  /** The reported tokens. Default: counted from the characters. */
  readonly usage?: { readonly input: number; readonly output: number } | undefined
  /** Default: `stop`. */
  readonly reason?: FinishReason | undefined
}

/** The replies of the root run, turn by turn, and of each task by its id. The last reply of a list repeats. */
export interface Script {
  readonly root: ReadonlyArray<Line>
  readonly tasks?: { readonly [id: string]: ReadonlyArray<Line> } | undefined
}

/** How texts are cut into pieces: whole, by word, or by character. */
export type Style = "whole" | "words" | "chars"

/** Creates a provider that follows a script. */
export const provider = (script: Script, style: Style = "whole", name = "script"): ProviderShape => {
  const tasks = new Map(Object.entries(script.tasks ?? {}))
  const inputs = inputsOf(script.root)
  const count = counter()
  return {
    name,
    stream: (request) =>
      Stream.unwrap(
        Effect.suspend(() => {
          const lines = linesOf(request.messages, inputs, tasks, script.root)
          const { answers, characters } = count(request.messages)
          const line = lines?.[Math.min(answers, lines.length - 1)]
          if (line === undefined) return Effect.fail(missing(name))
          if (line instanceof ProviderError) return Effect.fail(line)
          const spoken = typeof line === "string" ? { text: line } : line
          const parts = Stream.fromIterable(partsOf(characters, spoken, style))
          return spoken.delay === undefined ? Effect.succeed(parts) : Effect.as(Effect.sleep(spoken.delay), parts)
        })
      )
  }
}

const missing = (provider: string): ProviderError =>
  new ProviderError({ provider, reason: "invalid_request", detail: "the script has no reply for this call" })

/** Returns the inputs of all tasks in the script, with their ids, the longest first, since one may end with another. */
const inputsOf = (root: ReadonlyArray<Line>): ReadonlyArray<readonly [input: string, id: string]> =>
  root
    .flatMap((line) => {
      if (line instanceof ProviderError) return []
      const { blocks } = BlockParser.parse(typeof line === "string" ? line : line.text)
      return blocks.flatMap((block) => {
        const plan = block.type === "plan" ? Plan.validate(block.content) : undefined
        return plan !== undefined && Result.isSuccess(plan) ? plan.success.tasks : []
      })
    })
    .map((task) => [task.input, task.id] as const)
    .toSorted(([a], [b]) => b.length - a.length)

/** Returns the lines for a conversation: those of a task if its first message ends with the task's input. */
const linesOf = (
  messages: ReadonlyArray<Message>,
  inputs: ReadonlyArray<readonly [input: string, id: string]>,
  tasks: ReadonlyMap<string, ReadonlyArray<Line>>,
  root: ReadonlyArray<Line>
): ReadonlyArray<Line> | undefined => {
  const first = messages.find((message) => message.role === "user")?.content.findLast((part) => part.type === "text")
  const text = first?.type === "text" ? first.text : ""
  const found = inputs.find(([input]) => text === input || text.endsWith(`\n\n${input}`))
  return found === undefined ? root : tasks.get(found[1])
}

const partsOf = (characters: number, spoken: Spoken, style: Style): ReadonlyArray<StreamPart> => {
  const { reason = "stop", text } = spoken
  const usage = spoken.usage ?? { input: characters, output: text.length }
  const tokens = (count: number) => (spoken.usage === undefined ? Math.ceil(count / 4) : count)
  return [
    { type: "text-start", id: "0" },
    ...cut(text, style).map((delta): StreamPart => ({ type: "text-delta", id: "0", delta })),
    { type: "text-end", id: "0" },
    {
      type: "finish",
      reason,
      usage: { inputTokens: { total: tokens(usage.input) }, outputTokens: { total: tokens(usage.output) } }
    }
  ]
}

interface Count {
  readonly answers: number
  readonly characters: number
}

/**
 * Creates a counter of conversations. A continued conversation is counted from its last message, since a run of
 * thousands of turns sends all of them each time.
 */
const counter = () => {
  const counted = new WeakMap<Message, Count & { readonly rest: ReadonlyArray<Message> }>()
  return (messages: ReadonlyArray<Message>): Count => {
    // The system message is created anew for each turn.
    const start = messages[0]?.role === "system" ? 1 : 0
    const rest = messages.slice(start)
    const [first] = rest
    const before = first === undefined ? undefined : counted.get(first)
    const goesOn = before !== undefined && commonPrefix(before.rest, rest) === before.rest.length
    let { answers, characters } = goesOn ? before : { answers: 0, characters: 0 }
    for (const message of goesOn ? rest.slice(before.rest.length) : rest) {
      if (message.role === "assistant") answers++
      characters += charactersOf(message)
    }
    if (first !== undefined) counted.set(first, { answers, characters, rest })
    return {
      answers,
      characters: messages.slice(0, start).reduce((sum, message) => sum + charactersOf(message), characters)
    }
  }
}

const charactersOf = ({ content }: Message): number => {
  let sum = 0
  for (const part of content) if (part.type === "text") sum += part.text.length
  return sum
}

const cut = (text: string, style: Style): ReadonlyArray<string> => {
  if (style === "whole") return text === "" ? [] : [text]
  return style === "words" ? (text.match(/\s*\S+|\s+/g) ?? []) : Array.from(text)
}
