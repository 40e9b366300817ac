/**
 * Plays the tapes of kernel.json and says where a run differs from them.
 *
 * Differences that the rules ask for are mapped here and nowhere else: skills
 * of an agent without a list run through `gate: "listing"` (BP-66), notes about
 * passed-over blocks are further user messages (W-10), what is injected is
 * escaped (BP-76), prose plans are no rejections (W-34), type names are ours, a
 * hint may follow the reminder (W-36), tasks are recorded at their step (W-28)
 * and their media are named (W-21), one predicate says who can act (BP-42).
 */
import { Effect, Exit, Layer, Stream } from "effect"
import {
  Agent,
  Block,
  Content,
  InstructionBuilder,
  Kernel,
  Media,
  MediaStore,
  Message,
  Plan,
  Protocol,
  ProtocolRegistry,
  Provider,
  Recorder,
  type RunEvent,
  RunStore,
  Skill,
  SkillRegistry,
  StreamPart
} from "kernai"
import type { Json } from "../../src/Content.ts"
import { mediumOf } from "../../src/internal/medium.ts"
import { isSkillResult } from "../../src/internal/skillOutput.ts"
import { canonical } from "./canonical.ts"
import { hashesAsJson, inputs, ourListing } from "./skillSpec.ts"
import type * as Vectors from "./vectors.ts"

type Part = string | { readonly kind?: string; readonly mime: string; readonly base64: string }
interface Returns {
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
interface Outcome {
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
interface Played {
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

// ---------------------------------------------------------------- playing

/** Our errors say which provider failed; those of the vectors do not. */
const scripted = "scripted"

const bytesOf = (base64: string) => Uint8Array.from(Buffer.from(base64, "base64"))
const mediaOf = (part: Exclude<Part, string>) => Media.fromBytes(bytesOf(part.base64), part.mime)
const partOf = (part: Part) => (typeof part === "string" ? part : mediaOf(part))

/** A medium of the history is no medium of the run: it stands in the message as it is (BP-34). */
const contentOf = (part: Part): string | Content.Content => {
  if (typeof part === "string") return part
  return mediumOf(mediaOf(part).kind, { data: bytesOf(part.base64), mediaType: part.mime })
}

const valueOf = (
  returns: Returns,
  echoed: () => string,
  params: () => Json
): Effect.Effect<unknown, { readonly message: string }> => {
  switch (returns.kind) {
    case "text":
      return Effect.succeed(returns.text ?? "")
    case "null":
      return Effect.succeed(null)
    case "json":
      return Effect.succeed(returns.value ?? null)
    case "echo":
      return Effect.succeed(`${returns.prefix ?? ""}${echoed()}`)
    case "params":
      return Effect.succeed(JSON.stringify(params()))
    case "media":
      return Effect.succeed(mediaOf({ mime: returns.mime ?? "", base64: returns.base64 ?? "" }))
    case "parts":
      return Effect.succeed((returns.parts ?? []).map(partOf))
    case "result": {
      const media =
        returns.media === undefined ? [] : Array.isArray(returns.media) ? returns.media : [returns.media as Part]
      return Effect.succeed(
        Skill.result(returns.text ?? "", {
          media: media.flatMap((part: Part) => (typeof part === "string" ? [] : [mediaOf(part)])),
          metadata: returns.metadata ?? {}
        })
      )
    }
    case "raise":
      return Effect.fail({ message: returns.message ?? "" })
    case "message":
      return Effect.succeed(
        Message.make(returns.role ?? "user", returns.content ?? returns.text ?? returns.message ?? "")
      )
    default:
      return Effect.die(new Error(`unknown kind of return '${returns.kind}'`))
  }
}

/** Plays a tape with its replies cut into characters or whole. */
export const play = Effect.fnUntraced(function* (tape: Tape, whole: boolean) {
  const requests = new Map<string, Array<Provider.Request>>()
  const generations: Array<Played["generations"][number]> = []
  let evaluations = 0
  const provider: Provider.ProviderShape = {
    name: scripted,
    stream: (request) =>
      Stream.suspend(() => {
        const scope = scopeOf(tape, request.messages)
        const seen = requests.get(scope) ?? []
        requests.set(scope, [...seen, request])
        generations.push({ scope, options: request.generation })
        const replies = scope === "root" ? tape.replies : (tape.sub_replies?.[scope] ?? [])
        const reply = replies[Math.min(seen.length, replies.length - 1)] ?? ""
        if (typeof reply !== "string") {
          return Stream.fail(
            new Provider.ProviderError({ provider: scripted, reason: "server_error", detail: reply.fail })
          )
        }
        const usage = {
          inputTokens: { total: withoutNotes(request.messages).length },
          outputTokens: { total: Array.from(reply).length }
        }
        const pieces = whole ? [reply] : Array.from(reply)
        const arrays = pieces.map((piece) => [StreamPart.text(piece)])
        return Stream.concat(
          Stream.flatMap(Stream.fromIterable(arrays), (parts) => Stream.fromIterable(parts)),
          Stream.make(StreamPart.finish("stop", usage))
        )
      })
  }
  const agent = Agent.make({
    instructions:
      tape.agent.instructions_lambda === true
        ? Effect.sync(() => `${tape.agent.instructions} v${++evaluations}`)
        : tape.agent.instructions,
    model: tape.agent.model,
    maxSteps: tape.agent.max_steps,
    gate: "listing",
    ...proseOf(tape),
    ...(tape.agent.skills === null ? {} : { skills: tape.agent.skills }),
    ...(tape.agent.protocols === null ? {} : { protocols: tape.agent.protocols }),
    ...(tape.agent.generation === undefined ? {} : { generation: generationOf(tape.agent.generation) })
  })
  const skills = (tape.skills ?? []).map((spec) =>
    Skill.make(spec.name, {
      description: spec.description ?? "",
      input: inputs(spec.inputs ?? {}),
      requires: spec.requires ?? [],
      execute: (params) =>
        valueOf(
          spec.returns,
          () => String(Object.entries(params).find(([key]) => key === spec.returns.input)?.[1] ?? ""),
          () => JSON.parse(JSON.stringify(params))
        )
    })
  )
  const protocols = (tape.protocols ?? [])
    .filter((spec) => !Protocol.reserved.has(spec.name))
    .map((spec) =>
      Protocol.make(spec.name, {
        documentation: spec.documentation ?? null,
        handle: (block) =>
          valueOf(
            spec.returns,
            () => block.content,
            () => block.content
          )
      })
    )
  const recording = Recorder.memory()
  const tasks: Array<Json> = []
  const events: Array<RunEvent.RunEvent> = []
  const collect = { record: (event: RunEvent.RunEvent) => (events.push(event), recording.record(event)) }
  let media: ReadonlyArray<string> = []
  const program = Effect.gen(function* () {
    const store = yield* MediaStore.MediaStore
    // Held open, so that the run's media can be looked at when it is over.
    const view = yield* store.run("tape")
    const given = Array.isArray(tape.input) ? tape.input : [tape.input as Part]
    const exit = yield* Effect.exit(
      Kernel.run(agent, given.map(partOf), {
        runId: "tape",
        history: (tape.history ?? []).map(({ content, role }) => Message.make(role, [content].flat().map(contentOf))),
        provider,
        ...(tape.config?.allowed_skills === undefined ? {} : { allowedSkills: tape.config.allowed_skills }),
        onTaskComplete: ({ error, input, result, taskId }) =>
          Effect.sync(() => tasks.push({ task_id: taskId, input, result, error }))
      })
    )
    media = (yield* view.list).map((stored) => stored.id)
    return exit
  })
  const exit = yield* program.pipe(
    Effect.provide(
      Layer.provideMerge(
        Kernel.layer,
        Layer.mergeAll(
          SkillRegistry.layer(...skills),
          ProtocolRegistry.layer(...protocols),
          MediaStore.layerMemory,
          RunStore.layerMemory,
          Recorder.layer(collect)
        )
      )
    ),
    Effect.scoped
  )
  const rows = recording
    .classic()
    .map((entry) => [entry.step, entry.depth, entry.taskId, entry.event, entry.data] as const)
  const played: Played = { exit, events, requests, rows, media, tasks, evaluations, generations }
  return played
})

/**
 * The recorded library asks its own question about who is corrected: a list of
 * skills or of protocols, registered or not. Where ours has another answer
 * (BP-42), the setting gives the recorded one.
 */
const proseOf = ({ agent, protocols = [] }: Tape): { readonly prose?: "corrective" | "final" } => {
  const corrects = agent.skills !== null || (agent.protocols !== null && agent.protocols.length > 0)
  const visible = protocols.filter(
    ({ name }) => !Protocol.reserved.has(name) && (agent.protocols === null || agent.protocols.includes(name))
  )
  return corrects === (agent.skills !== null || visible.length > 0) ? {} : { prose: corrects ? "corrective" : "final" }
}

const generationOf = ({
  extra,
  max_tokens,
  temperature,
  thinking,
  top_p,
  ...rest
}: {
  readonly [key: string]: Json
}) => ({
  ...(typeof temperature === "number" ? { temperature } : {}),
  ...(typeof max_tokens === "number" ? { maxTokens: max_tokens } : {}),
  ...(typeof top_p === "number" ? { topP: top_p } : {}),
  ...(thinking === undefined || thinking === null
    ? {}
    : { thinking: thinking as { readonly budget?: number; readonly effort?: string } }),
  ...(Object.keys(rest).length === 0 && extra === undefined ? {} : { extra: { ...rest } })
})

/** A sub-agent is known by the end of its first user message. */
const scopeOf = (tape: Tape, messages: ReadonlyArray<Message.Message>): string => {
  const first = messages.find((message) => message.role === "user")
  const text = first === undefined ? "" : Message.text(first)
  const known = Object.entries(tape.task_inputs ?? {})
    .filter(([, input]) => text.endsWith(input))
    .toSorted(([, a], [, b]) => b.length - a.length)
  return known[0]?.[0] ?? "root"
}

// ---------------------------------------------------------------- comparing

/** Where what was played differs from one expected outcome. */
export const differences = (tape: Tape, played: Played, expected: Outcome): ReadonlyArray<Difference> => {
  const found: Array<Difference> = []
  const compare = (where: string, want: unknown, got: unknown) => {
    if (canonical(want) !== anonymous(canonical(got))) found.push({ where, expected: want, actual: got })
  }
  if (expected.result !== undefined)
    compare("result", expected.result, Exit.isSuccess(played.exit) ? played.exit.value.text : played.exit)
  if (expected.error !== undefined) compareError(expected.error, played, compare)
  const calls = [...played.requests.values()].reduce((sum, list) => sum + list.length, 0)
  if (expected.provider_calls !== undefined) compare("provider_calls", expected.provider_calls, calls)
  for (const want of expected.tapes ?? []) compareTape(want, played, compare)
  const told = merge(played.events.flatMap((event) => toldEvent(event)))
  if (expected.events !== undefined) {
    const wanted = [expected.events, expected.events_when_streamed_by_char ?? expected.events]
    const same = wanted.find((events) => canonical(merge(events.map(wantedEvent))) === canonical(told))
    compare("events", merge((same ?? expected.events).map(wantedEvent)), told)
  }
  if (expected.event_counts !== undefined) {
    // How many pieces of text stand side by side depends on which task spoke in between.
    const counted = (name: string) => name !== "text_chunk" && name !== "block_content"
    const counts: { [name: string]: number } = {}
    for (const [name] of told) if (counted(name)) counts[name] = (counts[name] ?? 0) + 1
    const wanted = Object.entries(expected.event_counts).filter(([name, count]) => counted(name) && count > 0)
    compare("event_counts", Object.fromEntries(wanted), counts)
  }
  const asked = new Map<string, number>()
  const rows = played.rows.map((row): Row => {
    const told = toldRow(row)
    if (told[3] !== "messages_sent") return told
    const scope = told[2] ?? "root"
    const index = asked.get(scope) ?? 0
    asked.set(scope, index + 1)
    const messages = withoutNotes(played.requests.get(scope)?.[index]?.messages ?? [])
    return [told[0], told[1], told[2], told[3], { messages: messages.length }]
  })
  if (expected.recorder !== undefined)
    compare("recorder", expected.recorder.flatMap(wantedRow), rows.flatMap(droppedRow))
  for (const [scope, wanted] of Object.entries(expected.recorder_by_scope ?? {})) {
    const own = rows.filter((row) => (row[2] ?? "root") === scope && !row[3].startsWith("task_"))
    compare(`recorder of ${scope}`, wanted.flatMap(wantedRow), own.flatMap(droppedRow))
  }
  if (expected.on_task_complete !== undefined) {
    const order = (list: ReadonlyArray<Json>) => list.map((item) => anonymous(canonical(item))).toSorted()
    compare("on_task_complete", order(expected.on_task_complete), order(played.tasks))
  }
  if (expected.task_entries !== undefined) {
    const own = rows.filter((row) => row[3].startsWith("task_")).map((row) => anonymous(canonical([row[3], row[4]])))
    compare("task entries", expected.task_entries.map((entry) => canonical(entryOf(entry))).toSorted(), own.toSorted())
  }
  if (expected.media_store !== undefined) {
    const order = (ids: ReadonlyArray<string>) => (tape.unordered === true ? ids.toSorted() : ids)
    compare("media_store", order(expected.media_store), order(played.media))
  }
  if (expected.generation_seen !== undefined)
    compareGeneration(expected.generation_seen, tape.agent.generation ?? {}, played, compare)
  // Ruby asks dynamic instructions once more before the first step (BP-36).
  if (expected.instruction_evaluations !== undefined)
    compare("evaluations", expected.instruction_evaluations - 1, played.evaluations)
  return found.map((difference) => ({ ...difference, where: `${tape.id} ${difference.where}` }))
}

/** An entry of a task: a row, or what is left of one without its scope. */
const entryOf = (entry: Json): readonly [Json, Json] => {
  if (!Array.isArray(entry))
    return isObject(entry) ? [entry["event"] ?? null, withoutDurations(entry["data"] ?? null)] : [null, entry]
  const [event = null, data = null] = entry.slice(-2)
  return [event, withoutDurations(data)]
}

/** Each call is given the agent's options; a sub-agent too, though Ruby gives it none (BP-61). */
const compareGeneration = (
  wanted: Json,
  given: { readonly [key: string]: Json },
  played: Played,
  compare: (where: string, want: unknown, got: unknown) => void
) => {
  const own = withoutNulls(given)
  for (const { options, scope } of played.generations) compare(`generation of ${scope}`, own, wireGeneration(options))
  const named = isObject(wanted) && "root" in wanted ? wanted["root"] : wanted
  const seen = Array.isArray(named) ? named : [named ?? null]
  for (const options of seen) {
    const clean = isObject(options) ? withoutNulls(options) : options
    if (canonical(clean) !== "{}") compare("generation_seen", clean, own)
  }
}

const withoutNulls = (data: { readonly [key: string]: Json }): { readonly [key: string]: Json } =>
  Object.fromEntries(
    Object.entries(data).flatMap(([key, value]) =>
      value === null ? [] : [[key, isObject(value) ? withoutNulls(value) : value]]
    )
  )

const wireGeneration = ({ extra, maxTokens, topP, ...rest }: Provider.Request["generation"]) => ({
  ...rest,
  ...(maxTokens === undefined ? {} : { max_tokens: maxTokens }),
  ...(topP === undefined ? {} : { top_p: topP }),
  ...extra
})

const classes: { readonly [name: string]: string } = {
  "Kernai::MaxStepsReachedError": "MaxStepsReached",
  "Kernai::ProviderError": "ProviderError"
}

const compareError = (
  expected: { readonly class: string; readonly message: string },
  played: Played,
  compare: (where: string, want: unknown, got: unknown) => void
) => {
  const error = Exit.isFailure(played.exit) ? failureOf(played.exit) : undefined
  // A class that none of ours stands for is told: any failure would do for it.
  compare("error", classes[expected.class] ?? expected.class, error?._tag)
  compare("error message", true, error?.message.includes(expected.message) ?? false)
}

const failureOf = (
  exit: Exit.Failure<unknown, unknown>
): { readonly _tag: string; readonly message: string } | undefined => {
  for (const reason of exit.cause.reasons) {
    if (reason._tag === "Fail" && reason.error instanceof Error && "_tag" in reason.error) {
      return { _tag: String(reason.error._tag), message: reason.error.message }
    }
  }
  return undefined
}

/** The messages of the last call of a scope. Notes about passed-over blocks may stand there too (W-10). */
const compareTape = (
  want: NonNullable<Outcome["tapes"]>[number],
  played: Played,
  compare: (where: string, want: unknown, got: unknown) => void
) => {
  const requests = played.requests.get(want.scope) ?? []
  compare(`${want.scope} calls`, want.calls, requests.length)
  const messages = requests.at(-1)?.messages ?? []
  const told = messages.map((message) => ({ role: message.role, content: message.content.map(toldContent) }))
  const left = [...told]
  for (const [index, wanted] of want.messages.entries()) {
    while (left.length > 0 && isNote(left[0]) && !fits(wanted, left[0])) left.shift()
    const got = left.shift()
    if (!fits(wanted, got)) compare(`${want.scope} message ${index}`, wanted, got)
  }
  compare(
    `${want.scope} further messages`,
    [],
    left.filter((message) => !isNote(message))
  )
}

interface Told {
  readonly role: string
  readonly content: ReadonlyArray<Json>
}

const withoutNotes = (messages: ReadonlyArray<Message.Message>) =>
  messages.filter((message) => !isNote({ role: message.role, content: message.content.map(toldContent) }))

const isNote = (message: Told | undefined): boolean =>
  message?.role === "user" &&
  /^<block type="error">(?:Ignored in your reply|Your plan was not started)/.test(String(message.content[0]))

/** How it is told that blocks did nothing by themselves, up to their types. */
const informationalOnly = InstructionBuilder.informational([]).split("(")[0] ?? ""

const fits = (want: { readonly [key: string]: Json }, got: Told | undefined): boolean => {
  if (got === undefined || got.role !== want["role"]) return false
  const text = String(got.content[0] ?? "")
  if (want["role"] === "system") return fitsSystem(want, text)
  if ("corrective" in want) {
    const kinds = Array.isArray(want["kinds"]) ? want["kinds"] : []
    // Which of the two it is (BP-41, BP-43).
    const isInformational = text.includes(informationalOnly)
    return (
      text.startsWith('<block type="error">') &&
      isInformational === (want["corrective"] === "informational_only") &&
      kinds.every((kind) => text.includes(String(kind)))
    )
  }
  if ("builtin" in want) return text.startsWith(`<block type="result" name="${String(want["builtin"])}">`)
  const content = Array.isArray(want["content"]) ? want["content"] : [want["content"] ?? null]
  // What tasks made is named where their results are told (W-21), a tag and the medium for each: behind
  // the list of all results, before the ones that a further task waited for.
  const extra = Math.max(got.content.length - content.length, 0)
  const isWaited = text.startsWith('<block type="media" ') && !String(content[0]).startsWith('<block type="media" ')
  const [from, to] = text.startsWith('<block type="result" name="tasks">')
    ? [content.length, got.content.length]
    : [0, isWaited ? extra : 0]
  const more = got.content.slice(from, to)
  if (!more.every((part, at) => (at % 2 === 0 ? String(part).startsWith('<block type="media" ') : isObject(part)))) {
    return false
  }
  const actual = anonymous(
    canonical(
      got.content.toSpliced(from, more.length).map((part) => (typeof part === "string" ? hintLess(plain(part)) : part))
    )
  )
  return [written, (part: string) => hashesAsJson(written(part))].some(
    (read) => canonical(content.map((part) => (typeof part === "string" ? plain(read(part)) : part))) === actual
  )
}

/** Without the name of the provider that failed. */
const anonymous = (text: string): string => text.replaceAll(`${scripted}: `, "")

/** A text of the vectors in our words, where a null default is written out. */
const written = (text: string): string => ourListing(text).replace(/ default: (?=,|\n|$|<)/g, " default: null")

/** A hint may follow the reminder of a misfit (W-36). */
const withoutHint = (text: string): string => text.replace(/\n\nHint: [\s\S]*$/, "")

/** The same in a framed error, whose end stays. */
const hintLess = (text: string): string => text.replace(/\n\nHint: [\s\S]*<\/block>$/, "</block>")

/** What is injected is escaped (BP-76): compare what it says. */
const plain = (text: string): string => Block.unescape(text).replaceAll("&quot;", '"')

const fitsSystem = (want: { readonly [key: string]: Json }, text: string): boolean => {
  const base = String(want["base"]).replace(/ v(\d+)$/, (_, count: string) => ` v${Number(count) - 1}`)
  const mentions = Array.isArray(want["mentions"]) ? want["mentions"] : []
  const words = ["/skills", "/protocols", "/workflow", "/tasks"]
  const inputs = section(text, "## MULTIMODAL INPUTS")
  const outputs = section(text, "## MULTIMODAL OUTPUTS")
  const named = (wanted: Json | undefined, found: string | undefined) =>
    wanted === null || wanted === undefined
      ? found === undefined
      : found !== undefined &&
        (Array.isArray(wanted) ? wanted : []).every((kind) => found.toLowerCase().includes(String(kind).toLowerCase()))
  return (
    text.startsWith(base) &&
    (text === base) === want["exactly_base"] &&
    text.includes("## RESPONSE FORMAT") === want["block_rules"] &&
    words.every((word) => text.includes(word) === mentions.includes(word)) &&
    named(want["multimodal_inputs"], inputs) &&
    named(want["multimodal_outputs"], outputs)
  )
}

const section = (text: string, heading: string): string | undefined => {
  const start = text.indexOf(heading)
  if (start < 0) return undefined
  const end = text.indexOf("\n## ", start + 1)
  return text.slice(start, end < 0 ? undefined : end)
}

const toldContent = (part: Content.Content): Json =>
  part.type === "text"
    ? part.text
    : Content.isMedia(part)
      ? { media: part.fileId ?? idOf(part.data), kind: part.type, mime: part.mediaType ?? "" }
      : { type: part.type }

// ---------------------------------------------------------------- events

type Pair = readonly [string, Json]

/** Our events under the names and shapes of the vectors; those they do not know are left out. */
const toldEvent = (event: RunEvent.RunEvent): ReadonlyArray<Pair> => {
  switch (event.type) {
    case "text_chunk":
    case "block_content":
      return [[event.type, event.text]]
    case "block_start":
      return [["block_start", { type: event.blockType, name: event.name }]]
    case "plan":
    case "json":
      return [[event.type, event.content]]
    case "final":
      return [["final", event.text]]
    case "builtin_result":
      return [["builtin_result", { command: event.command, result: documented(event.result) }]]
    case "skill_result": {
      const metadata = event.metadata === undefined ? {} : { metadata: event.metadata }
      return [["skill_result", { skill: event.skill, result: raw(event.output), ...metadata }]]
    }
    case "skill_error":
      return event.skill === null ? [] : [["skill_error", { skill: event.skill, error: withoutHint(event.error) }]]
    case "protocol_execute":
      return [["protocol_execute", { protocol: event.protocol, request: event.request }]]
    case "protocol_result":
      return [["protocol_result", { protocol: event.protocol, result: event.result }]]
    case "protocol_error":
      return [["protocol_error", { protocol: event.protocol, error: event.error }]]
    case "workflow_start":
      return [["workflow_start", { goal: event.goal, strategy: event.strategy, tasks: event.tasks.map(wireTask) }]]
    case "task_start":
      return [["task_start", { id: event.id, input: event.input }]]
    case "task_complete":
      return [["task_complete", { id: event.id, result: event.result }]]
    case "task_error":
      return [["task_error", { id: event.id, error: event.error }]]
    case "workflow_complete":
      return [["workflow_complete", Object.fromEntries(event.results)]]
    case "informational_only":
      return [["informational_only", { kinds: [...event.kinds] }]]
    case "no_blocks_stall":
      return [["no_blocks_stall", { prose_preview: event.prosePreview }]]
    default:
      return []
  }
}

const wireTask = ({
  dependsOn,
  ...task
}: {
  readonly dependsOn: ReadonlyArray<string>
  readonly [key: string]: unknown
}): Json => {
  const { id, input, parallel, status } = JSON.parse(JSON.stringify(task))
  return { id, input, parallel, depends_on: [...dependsOn], status }
}

/** What a skill returned, as the vectors write it. */
const raw = (value: unknown): Json => {
  if (Array.isArray(value)) return value.map(raw)
  if (isMedia(value))
    return {
      media: mediaIds.get(Buffer.from(value.source.bytes).toString("base64")) ?? "",
      kind: value.kind,
      mime: value.mimeType
    }
  if (isSkillResult(value)) return value.text
  return value === undefined ? null : JSON.parse(JSON.stringify(value))
}

const isMedia = (
  value: unknown
): value is { readonly kind: string; readonly mimeType: string; readonly source: { readonly bytes: Uint8Array } } =>
  typeof value === "object" &&
  value !== null &&
  "mimeType" in value &&
  "source" in value &&
  typeof value.source === "object" &&
  value.source !== null &&
  "bytes" in value.source

const mediaIds = new Map<string, string>()

const idOf = (bytes: Uint8Array | undefined): string =>
  bytes === undefined ? "" : (mediaIds.get(Buffer.from(bytes).toString("base64")) ?? "")

/** Ids are digests: they are made before events are compared. */
export const learnMedia = Effect.fnUntraced(function* (tape: Tape) {
  const parts: Array<Exclude<Part, string>> = []
  const visit = (value: unknown): void => {
    if (Array.isArray(value)) return value.forEach(visit)
    if (typeof value !== "object" || value === null) return
    if ("base64" in value && "mime" in value) parts.push({ mime: String(value.mime), base64: String(value.base64) })
    Object.values(value).forEach(visit)
  }
  visit(tape)
  for (const part of parts)
    mediaIds.set(Buffer.from(bytesOf(part.base64)).toString("base64"), yield* Media.id(mediaOf(part)))
})

const wantedEvent = ([name, data]: Pair): Pair =>
  name === "skill_error" || name === "builtin_result" ? [name, translate(data)] : [name, data]

const translate = (value: Json): Json => {
  if (typeof value === "string") return written(value)
  if (Array.isArray(value)) return value.map(translate)
  if (typeof value !== "object" || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, item]) => [key, translate(item)]))
}

/** Neighbouring text or content pieces are one. */
const merge = (events: ReadonlyArray<Pair>): ReadonlyArray<Pair> => {
  const merged: Array<Pair> = []
  for (const [name, data] of events) {
    const last = merged.at(-1)
    if ((name === "text_chunk" || name === "block_content") && last?.[0] === name) {
      merged[merged.length - 1] = [name, `${String(last[1])}${String(data)}`]
    } else if (!((name === "text_chunk" || name === "block_content") && data === "")) merged.push([name, data])
  }
  return merged
}

// ---------------------------------------------------------------- recorder rows

type Row = readonly [number, number, string | null, string, Json]

/** Ruby records what happens to tasks at step 0 of their parent (W-28). */
const stepOf = (step: number, event: string): number => (event.startsWith("task_") ? 0 : step)

const toldRow = ([at, depth, taskId, event, data]: Row): Row => {
  const step = stepOf(at, event)
  const bare = withoutDurations(data)
  if (event === "skill_error" && isObject(bare))
    return [step, depth, taskId, event, { ...bare, error: withoutHint(String(bare["error"])) }]
  if (event === "workflow_complete" && isObject(data) && Array.isArray(data["results"])) {
    return [
      step,
      depth,
      taskId,
      event,
      {
        results: Object.fromEntries(
          data["results"].flatMap((pair) => (Array.isArray(pair) ? [[String(pair[0]), pair[1] ?? null]] : []))
        )
      }
    ]
  }
  if (event === "builtin_result" && isObject(data))
    return [step, depth, taskId, event, { ...data, result: documented(data["result"] ?? null) }]
  if (event === "skill_result") return [step, depth, taskId, event, withoutIds(bare)]
  return [step, depth, taskId, event, bare]
}

/** The documentation of workflows is in our own words. */
const documented = (result: Json): Json =>
  result === InstructionBuilder.workflowDocumentation ? "(workflow documentation)" : result

/** A recorded medium is told by kind and type; its bytes are in the media store. */
const withoutIds = (data: Json): Json => {
  if (Array.isArray(data)) return data.map(withoutIds)
  if (!isObject(data)) return data
  const mime = data["mime"] ?? data["mimeType"]
  if (typeof data["kind"] === "string" && typeof mime === "string") return { kind: data["kind"], mime }
  return Object.fromEntries(Object.entries(data).map(([key, item]) => [key, withoutIds(item)]))
}

const withoutDurations = (data: Json): Json => {
  if (typeof data !== "object" || data === null || Array.isArray(data)) return data
  return Object.fromEntries(Object.entries(data).filter(([key]) => key !== "duration_ms" && key !== "latency_ms"))
}

/** Ruby records its plain-language plans as rejected (W-34). */
const wantedRow = ([step, depth, taskId, event, data]: Row): ReadonlyArray<Row> => {
  if (event === "plan_rejected" && isObject(data) && typeof data["raw"] === "string" && Plan.isProse(data["raw"]))
    return []
  if (event === "skill_error" || event === "builtin_result") return [[step, depth, taskId, event, translate(data)]]
  if (event === "skill_result") return [[step, depth, taskId, event, withoutIds(data)]]
  return droppedRow([step, depth, taskId, event, data])
}

/** Of an answer, its tokens count. */
const droppedRow = (row: Row): ReadonlyArray<Row> => {
  const [step, depth, taskId, event, data] = row
  if (event === "llm_response" && isObject(data)) {
    const { completion_tokens, prompt_tokens, total_tokens } = data
    return [
      [
        step,
        depth,
        taskId,
        event,
        {
          prompt_tokens: prompt_tokens ?? null,
          completion_tokens: completion_tokens ?? null,
          total_tokens: total_tokens ?? null
        }
      ]
    ]
  }
  return [row]
}

const isObject = (value: Json): value is { readonly [key: string]: Json } =>
  typeof value === "object" && value !== null && !Array.isArray(value)
