/** What a tape of kernel.json may say, and what a played one gave. */
import { Exit } from "effect"
import { Content, Media, Message, Provider, type RunEvent } from "kernai"
import type { Json } from "../../../src/Content.ts"
import { mediumOf } from "../../../src/store-kit/Medium.ts"
import type * as Vectors from "../vectors.ts"

export type Part = string | { readonly kind?: string; readonly mime: string; readonly base64: string }

export interface Returns {
  readonly kind: string
  readonly text?: string
  readonly value?: Json
  readonly input?: string
  readonly prefix?: string
  readonly message?: string
  readonly role?: Message.Role
  readonly content?: string
  readonly mime?: string
  readonly base64?: string
  readonly parts?: ReadonlyArray<Part>
  readonly media?: ReadonlyArray<Part> | Part
  readonly metadata?: { readonly [key: string]: Json }
}

export interface Outcome {
  readonly result?: string
  readonly error?: { readonly class: string; readonly message: string }
  readonly provider_calls?: number
  readonly tapes?: ReadonlyArray<{
    readonly scope: string
    readonly calls: number
    readonly messages: ReadonlyArray<{ readonly [key: string]: Json }>
  }>
  readonly events?: ReadonlyArray<readonly [string, Json]>
  readonly event_counts?: { readonly [name: string]: number }
  readonly recorder?: ReadonlyArray<readonly [number, number, string | null, string, Json]>
  readonly recorder_by_scope?: {
    readonly [scope: string]: ReadonlyArray<readonly [number, number, string | null, string, Json]>
  }
  readonly task_entries?: ReadonlyArray<Json>
  readonly on_task_complete?: ReadonlyArray<Json>
  readonly media_store?: ReadonlyArray<string>
  readonly generation_seen?: Json
  readonly events_when_streamed_by_char?: ReadonlyArray<readonly [string, Json]>
  readonly instruction_evaluations?: number
}

export interface Tape {
  readonly id: string
  readonly title: string
  readonly agent: {
    readonly instructions: string
    readonly instructions_lambda?: boolean
    readonly model: { readonly id: string; readonly capabilities: ReadonlyArray<never> }
    readonly max_steps: number
    readonly skills: null | "all" | ReadonlyArray<string>
    readonly protocols: null | ReadonlyArray<string>
    readonly generation?: { readonly [key: string]: Json }
  }
  readonly config?: { readonly allowed_skills?: ReadonlyArray<string> }
  readonly input: string | ReadonlyArray<Part> | Part
  readonly history?: ReadonlyArray<{ readonly role: Message.Role; readonly content: Part | ReadonlyArray<Part> }>
  readonly skills?: ReadonlyArray<{
    readonly name: string
    readonly description?: string
    readonly inputs?: { readonly [key: string]: unknown }
    readonly requires?: ReadonlyArray<never>
    readonly returns: Returns
  }>
  readonly protocols?: ReadonlyArray<{
    readonly name: string
    readonly documentation?: string
    readonly returns: Returns
  }>
  readonly replies: ReadonlyArray<string | { readonly fail: string }>
  readonly sub_replies?: { readonly [task: string]: ReadonlyArray<string | { readonly fail: string }> }
  readonly task_inputs?: { readonly [task: string]: string }
  readonly unordered?: boolean
  readonly disputed?: unknown
  readonly expected: Outcome & { readonly streamed_in_one_chunk?: Outcome; readonly streamed_by_char?: Outcome }
}

const outcomeKeys: Vectors.Keys = {
  result: true,
  error: { class: true, message: true },
  provider_calls: true,
  tapes: [
    {
      scope: true,
      calls: true,
      messages: [
        {
          role: true,
          content: true,
          base: true,
          starts_with_base: true,
          exactly_base: true,
          block_rules: true,
          mentions: true,
          multimodal_inputs: true,
          multimodal_outputs: true,
          corrective: true,
          kinds: true,
          builtin: true
        }
      ]
    }
  ],
  events: true,
  events_when_streamed_by_char: true,
  event_counts: true,
  recorder: true,
  recorder_by_scope: true,
  task_entries: true,
  on_task_complete: true,
  media_store: true,
  generation_seen: true,
  instruction_evaluations: true
}

const returnsKeys: Vectors.Keys = {
  kind: new Set(["text", "null", "json", "echo", "params", "media", "parts", "result", "raise", "message"]),
  text: true,
  value: true,
  input: true,
  prefix: true,
  message: true,
  role: true,
  content: true,
  mime: true,
  base64: true,
  parts: true,
  media: true,
  metadata: true
}

/** What this player looks at: a tape with anything else is not understood. */
export const keys: Vectors.Keys = {
  id: true,
  title: true,
  note: true,
  agent: {
    instructions: true,
    instructions_lambda: true,
    model: { id: true, capabilities: true },
    max_steps: true,
    skills: true,
    protocols: true,
    generation: true
  },
  config: { allowed_skills: true },
  input: true,
  history: [{ role: true, content: true }],
  skills: [{ name: true, description: true, inputs: true, requires: true, returns: returnsKeys }],
  protocols: [{ name: true, documentation: true, returns: returnsKeys }],
  replies: true,
  sub_replies: true,
  task_inputs: true,
  unordered: true,
  disputed: true,
  expected: { ...outcomeKeys, streamed_in_one_chunk: outcomeKeys, streamed_by_char: outcomeKeys }
}

/** What a played tape gave, in the words of the vectors. */
export interface Played {
  readonly exit: Exit.Exit<{ readonly text: string }, unknown>
  readonly events: ReadonlyArray<RunEvent.RunEvent>
  readonly requests: ReadonlyMap<string, ReadonlyArray<Provider.Request>>
  readonly rows: ReadonlyArray<readonly [number, number, string | null, string, Json]>
  readonly media: ReadonlyArray<string>
  readonly tasks: ReadonlyArray<Json>
  readonly evaluations: number
  /** The generation options of every call, in order. */
  readonly generations: ReadonlyArray<{ readonly scope: string; readonly options: Provider.Request["generation"] }>
}

export interface Difference {
  readonly where: string
  readonly expected: unknown
  readonly actual: unknown
}

/** Our errors say which provider failed; those of the vectors do not. */
export const scripted = "scripted"

export const bytesOf = (base64: string) => Uint8Array.from(Buffer.from(base64, "base64"))

export const mediaOf = (part: Exclude<Part, string>) => Media.fromBytes(bytesOf(part.base64), part.mime)

export const partOf = (part: Part) => (typeof part === "string" ? part : mediaOf(part))

/** A medium of the history is no medium of the run: it stands in the message as it is (BP-34). */
export const contentOf = (part: Part): string | Content.Content => {
  if (typeof part === "string") return part
  return mediumOf(mediaOf(part).kind, { data: bytesOf(part.base64), mediaType: part.mime })
}

export const isObject = (value: Json): value is { readonly [key: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value)
