/** Compares what a model was told with the messages of a tape. */
import { Block, Content, InstructionBuilder, type Message } from "kernai"
import type { Json } from "../../../src/Content.ts"
import { canonical } from "../canonical.ts"
import { hashesAsJson } from "../skillSpec.ts"
import { idOf } from "./media.ts"
import { type Outcome, scripted, type Played, isObject } from "./script.ts"
import { written } from "./words.ts"

/** The messages of the last call of a scope. Notes about passed-over blocks may stand there too (W-10). */
export const compareTape = (
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

export const withoutNotes = (messages: ReadonlyArray<Message.Message>) =>
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
export const anonymous = (text: string): string => text.replaceAll(`${scripted}: `, "")

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
