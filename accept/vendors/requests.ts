/**
 * Requests of every adapter, held against the types that the vendors publish for them in their own packages.
 *
 * Makes conversations by chance, with media, calls, results, options and hosted tools, writes what each adapter sends as
 * literals of the vendor's request type, and has the compiler read them. Prints the figures as one line of JSON.
 *
 * node --conditions=kernai-source accept/vendors/requests.ts
 */
import { Effect } from "effect"
import { spawnSync } from "node:child_process"
import { mkdtempSync, rmSync, writeFileSync } from "node:fs"
import { join } from "node:path"
import { fileURLToPath } from "node:url"
import * as Kernai from "../../src/index.ts"
import { HostedTools } from "../../src/provider/index.ts"
import { bodyOf, request, vendors } from "../../test/support/provider.ts"

const here = fileURLToPath(new URL(".", import.meta.url))
const root = join(here, "..", "..")

/** The request type of each format. */
const types: { readonly [vendor: string]: string } = {
  anthropic: "AnthropicRequest",
  openai: "OpenAI.Chat.ChatCompletionCreateParamsStreaming",
  compatible: "OpenAI.Chat.ChatCompletionCreateParamsStreaming",
  "openai-responses": "OpenAI.Responses.ResponseCreateParamsStreaming",
  google: "GeminiRequest",
  "google-interactions": "Plain<Interactions.CreateModelInteractionParamsStreaming>",
  ollama: "OllamaRequest"
}

const header = `import type Anthropic from "@anthropic-ai/sdk"
import type { Content, GenerationConfig, Interactions, Tool, ToolConfig } from "@google/genai"
import type { ChatRequest } from "ollama"
import type OpenAI from "openai"

// Older models take what the newest do not list.
type AnthropicRequest = Anthropic.Messages.MessageCreateParamsStreaming & { temperature?: number; top_p?: number }

// Enumerations of Google's package are words on the wire, which its reference writes in small letters too.
type Plain<T> = T extends string
  ? string extends T
    ? string
    : \`\${T}\` | Lowercase<\`\${T}\`>
  : T extends number | boolean | null | undefined | Blob
    ? T
    : T extends ReadonlyArray<infer Item>
      ? Array<Plain<Item>>
      : T extends object
        ? { [Key in keyof T]: Plain<T[Key]> }
        : T
type GeminiRequest = Plain<{
  contents: Array<Content>
  systemInstruction?: Content
  tools?: Array<Tool | { google_search: Tool["googleSearch"] } | { code_execution: Tool["codeExecution"] }>
  toolConfig?: ToolConfig
  generationConfig?: GenerationConfig
}>
// Ollama's package lists only a few words of JSON Schema.
type OllamaTool = { type: "function"; function: { name: string; description: string; parameters: { type: string; [word: string]: unknown } } }
type OllamaRequest = Omit<ChatRequest, "stream" | "tools"> & { stream: true; tools?: Array<OllamaTool> }
`

/** Numbers from a seed. */
const dice = (seed: number) => {
  let state = seed >>> 0
  return (sides: number): number => {
    state = (Math.imul(state ^ (state >>> 15), 0x2c1b3c6d) + 0x9e3779b9) >>> 0
    return ((state ^ (state >>> 13)) >>> 0) % sides
  }
}
type Dice = ReturnType<typeof dice>

const { Content, Message, Model } = Kernai
const bytes = new Uint8Array([1, 2, 3])

const media: ReadonlyArray<Kernai.Content.Content> = [
  Content.image({ data: bytes, mediaType: "image/png" }),
  Content.image({ url: "https://x.test/a.png", mediaType: "image/png" }),
  Content.document({ data: bytes, mediaType: "application/pdf", filename: "a.pdf" }),
  Content.document({ url: "https://x.test/a.pdf", mediaType: "application/pdf" }),
  Content.document({ data: new TextEncoder().encode("note"), mediaType: "text/plain" }),
  Content.audio({ data: bytes, mediaType: "audio/wav" }),
  Content.audio({ data: bytes, mediaType: "audio/mpeg" }),
  Content.video({ data: bytes, mediaType: "video/mp4" }),
  Content.data({ rows: [1, null, "a"] }),
  Content.code("const a = 1", "ts"),
  Content.error("Fault", "it broke")
]

const some = (roll: Dice): ReadonlyArray<Kernai.Content.Content> => [
  Content.text("w".repeat(1 + roll(20))),
  ...Array.from({ length: roll(3) }, () => media[roll(media.length)] ?? Content.text("x"))
]

/** A history as the kernel keeps it: each call is followed by its result. */
const history = (roll: Dice): ReadonlyArray<Kernai.Message.Message> => {
  const system = roll(2) === 0 ? [Message.system("You help.")] : []
  const turns = Array.from({ length: roll(4) }, (_, turn) => {
    const calls = Array.from({ length: roll(3) }, (_, index) => `c${turn}_${index}`)
    const thinking = roll(3) === 0 ? [Content.thinking("so")] : []
    return [
      Message.user(...some(roll)),
      Message.assistant(...thinking, Content.text("yes"), ...calls.map((id) => Content.toolUse(id, "add", { a: 1 }))),
      ...calls.map((id) => Message.tool(Content.toolResult(id, some(roll))))
    ]
  })
  return [...system, ...turns.flat(), Message.user(...some(roll))]
}

const add = {
  name: "add",
  description: "Adds",
  inputSchema: {
    type: "object",
    properties: { a: { type: "integer" }, b: { anyOf: [{ type: "string" }, { type: "null" }] } },
    required: ["a"],
    additionalProperties: false
  }
} as const

const hostedTools = [HostedTools.webSearch(), HostedTools.codeExecution()].map(
  ({ description, hosted = {}, inputSchema, name }) => ({ name, description, inputSchema, hosted })
)

const options = (roll: Dice): Kernai.Generation.Generation => ({
  ...(roll(2) === 0 ? { temperature: roll(10) / 10 } : {}),
  ...(roll(2) === 0 ? { maxTokens: 1 + roll(4_000) } : {}),
  ...(roll(3) === 0 ? { topP: 0.5 } : {}),
  ...(roll(3) === 0 ? { stopSequences: ["END"] } : {}),
  ...(roll(3) === 0 ? { seed: roll(100) } : {}),
  ...(roll(4) === 0 ? { thinking: { budget: 1_024 } } : roll(4) === 0 ? { thinking: { effort: "low" } } : {})
})

const model = Model.make("m", { capabilities: ["text", "vision", "audio_in", "video_in", "document_in"] })

const requestOf = (seed: number): Kernai.Provider.Request => {
  const roll = dice(seed)
  const messages = history(roll)
  return request({
    model,
    messages,
    tools: roll(3) === 0 ? [] : roll(3) === 0 ? [add, ...hostedTools] : [add],
    generation: options(roll),
    ...(roll(2) === 0 ? { cacheBreakpoints: [0] } : {}),
    ...(roll(4) === 0 ? { grammar: { _tag: "Json", schema: add.inputSchema } as const } : {})
  })
}

const count = 150

/** What the compiler does not accept, by vendor. */
const check = (text: string): { readonly status: number; readonly faults: ReadonlyArray<string> } => {
  const folder = mkdtempSync(join(here, "node_modules", ".requests-"))
  try {
    writeFileSync(join(folder, "requests.ts"), text)
    const config = {
      compilerOptions: {
        strict: true,
        noEmit: true,
        skipLibCheck: true,
        module: "nodenext",
        target: "es2024",
        lib: ["es2024", "dom"],
        types: []
      },
      files: ["requests.ts"]
    }
    writeFileSync(join(folder, "tsconfig.json"), JSON.stringify(config))
    const { status, stdout } = spawnSync(
      process.execPath,
      [join(root, "node_modules", "typescript", "bin", "tsc"), "-p", folder, "--pretty", "false"],
      { encoding: "utf8", maxBuffer: 64 * 1024 * 1024 }
    )
    const lines = text.split("\n")
    const faults = stdout
      .split("\n")
      .filter((line) => line.includes("error TS"))
      .map((line) => {
        const at = Number(/\((\d+),/.exec(line)?.[1] ?? 0)
        const name = /const (\w+?)_\d+/.exec(lines[at - 1] ?? "")?.[1] ?? "?"
        return `${name}: ${line.replace(/^.*error /, "")}`
      })
    return { status: status ?? -1, faults }
  } finally {
    rmSync(folder, { recursive: true, force: true })
  }
}

/** Each body once: a request whose media a vendor cannot take may be that of another. */
const literals = Effect.fn(function* (vendor: string, type: string) {
  const bodies = new Set<string>()
  for (let seed = 1; seed <= count; seed++) bodies.add(JSON.stringify(yield* bodyOf(vendor, requestOf(seed))))
  const name = vendor.replaceAll("-", "")
  // OpenAI is asked over Responses where a request has tools that it runs itself.
  const typeOf = (body: string) =>
    vendor === "openai" && "input" in JSON.parse(body) ? types["openai-responses"] : type
  return [...bodies].map((body, index) => `const ${name}_${index}: ${typeOf(body)} = ${body}`)
})

const program = Effect.gen(function* () {
  const texts: Array<string> = []
  const requests: { [vendor: string]: number } = {}
  for (const vendor of Object.keys(vendors)) {
    const type = types[vendor]
    if (type === undefined) return yield* Effect.die(new Error(`no request type for '${vendor}'`))
    const made = yield* literals(vendor, type)
    requests[vendor] = made.length
    texts.push(...made)
  }
  const wrong = ["const control_0: Anthropic.Messages.MessageCreateParamsStreaming = {}"]
  const { faults, status } = check([header, ...texts, ...wrong].join("\n"))
  const control = faults.filter((fault) => fault.startsWith("control"))
  return { requests, status, control: control.length, faults: faults.filter((fault) => !fault.startsWith("control")) }
})

console.log(JSON.stringify(await Effect.runPromise(program)))
