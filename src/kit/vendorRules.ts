/**
 * The rules by which vendors refuse requests, as data: one entry for each wire format.
 *
 * The adapters write requests by these rules. A rule names where it is published, or a thread that shows the vendor's
 * refusal, with the day on which it was read.
 */

/** The format of a request. `ai-sdk` and `effect-ai` are prompts for models of other packages. */
export type Wire =
  | "anthropic"
  | "chat"
  | "mistral"
  | "responses"
  | "gemini"
  | "gemini-interactions"
  | "ollama"
  | "ai-sdk"
  | "effect-ai"

/** How many images a request may have, and how large each may be. An absent field is not limited. */
export interface ImageLimits {
  /** The longest side in pixels. */
  readonly side?: number
  /** The longest side where a request has more images than these. */
  readonly sideOfMany?: { readonly above: number; readonly side: number }
  /** The bytes of one image as base64. */
  readonly encodedBytes?: number
  /** The images of a request. */
  readonly most?: number
}

/** How large PDF files may be. An absent field is not limited. */
export interface PdfLimits {
  /** The pages of one file. */
  readonly pages?: number
  /** The pages of all files of a request. */
  readonly pagesOfAll?: number
  /** The pages of all files, for models whose context window has no more tokens than these. */
  readonly pagesOfSmall?: { readonly window: number; readonly pages: number }
  /** The bytes of one file. */
  readonly bytes?: number
  /** The bytes of all files of a request. */
  readonly bytesOfAll?: number
}

/** The JSON Schemas to which a vendor can hold a reply. Every object of them is closed, and the outermost is one. */
export interface SchemaRules {
  /** The constraints of a value that may stand beside its type. */
  readonly constraints: ReadonlyArray<string>
  readonly formats: ReadonlyArray<string>
  /** Whether every property must be required. */
  readonly allRequired: boolean
  /** Whether a definition may refer to itself. */
  readonly recursive: boolean
  /** The levels of objects and lists in each other. */
  readonly depth: number
  /** The properties of all objects. */
  readonly properties: number
  /** The properties that are not required, where they are counted. */
  readonly optional?: number
  /** The unions, where they are counted. */
  readonly unions?: number
}

/** Where a rule is published. */
export interface Source {
  readonly rule: keyof Omit<VendorRules, "sources"> | "text"
  readonly url: string
  /** The day on which an excerpt of it was read. Absent for a page that was only found cited. */
  readonly readOn?: string
}

/** The rules of one format. In every format, text is well-formed Unicode without NUL. */
export interface VendorRules {
  /** The names of tools and calls. */
  readonly name: RegExp
  /** The ids of calls. Undefined where calls have none. */
  readonly callId: RegExp | undefined
  /** Whether a text block must hold more than white space. Where it need not, a result may be blank. */
  readonly refusesBlank: boolean
  /** Whether the conversation must begin with the user. */
  readonly userFirst: boolean
  /** Whether the conversation must end with the user or with results. */
  readonly userLast?: boolean
  /** Whether a message of the model may not end with its reasoning. */
  readonly needsItemAfterReasoning: boolean
  /** Where the results of one reply must stand: in the next message, or in the messages right after it. */
  readonly results: "next-message" | "next-messages"
  /** Whether results must stand before everything else in their message. */
  readonly resultsFirst?: boolean
  /** Whether the model must speak between results and the user. */
  readonly answersResults?: boolean
  /** How many cache marks a request may have, and the blocks that can have none. Undefined where there are no marks. */
  readonly cacheMarks?: { readonly most: number; readonly never: ReadonlyArray<string> }
  readonly images?: ImageLimits
  readonly pdf?: PdfLimits
  /** The bytes of a request. */
  readonly requestBytes?: number
  /** The schemas for typed answers. Undefined where none can be sent beside tools. */
  readonly schemas?: SchemaRules
  readonly sources: ReadonlyArray<Source>
}

const readOn = "2026-11-29"

/** The names that every vendor accepts: Google wants a letter or `_` first, and OpenAI and Anthropic take no dots. */
const common = /^[A-Za-z_][A-Za-z0-9_-]{0,63}$/

const word = /^[A-Za-z0-9_-]{1,64}$/

const formats = ["date-time", "time", "date", "duration", "email", "hostname", "ipv4", "ipv6", "uuid"]

const openAiSchemas: SchemaRules = {
  constraints: ["multipleOf", "minimum", "exclusiveMinimum", "maximum", "exclusiveMaximum", "minItems", "maxItems"],
  formats,
  allRequired: true,
  recursive: true,
  depth: 10,
  properties: 5_000
}

const geminiSchemas: SchemaRules = {
  constraints: ["minimum", "maximum", "minItems", "maxItems"],
  formats: ["date-time", "date", "time"],
  allRequired: false,
  recursive: false,
  depth: 32,
  properties: 5_000
}

const textSources: ReadonlyArray<Source> = [
  { rule: "text", url: "https://www.rfc-editor.org/rfc/rfc8259#section-8.2" },
  { rule: "text", url: "https://github.com/aebrer/dreb/issues/352", readOn }
]

/** The rules that both formats of OpenAI share. */
const openAi = {
  name: word,
  refusesBlank: false,
  userFirst: false,
  results: "next-messages",
  images: { most: 500 },
  pdf: { bytesOfAll: 50_000_000 },
  schemas: openAiSchemas
} as const

const openAiSources: ReadonlyArray<Source> = [
  ...textSources,
  { rule: "schemas", url: "https://developers.openai.com/api/docs/guides/structured-outputs" },
  { rule: "schemas", url: "https://github.com/ai-dynamo/dynamo/pull/15153", readOn },
  { rule: "name", url: "https://platform.openai.com/docs/api-reference/chat/create#chat-create-tools" },
  { rule: "images", url: "https://github.com/earendil-works/pi/pull/120", readOn },
  { rule: "pdf", url: "https://platform.openai.com/docs/guides/pdf-files" }
]

/** The vendor behind a model of another package is unknown, so its prompt keeps the rules of all. */
const anyVendor: VendorRules = {
  name: common,
  callId: /^[A-Za-z0-9_-]{1,40}$/,
  refusesBlank: true,
  userFirst: true,
  userLast: true,
  needsItemAfterReasoning: true,
  results: "next-message",
  sources: textSources
}

/** The rules by format. */
export const vendorRules: { readonly [wire in Wire]: VendorRules } = {
  anthropic: {
    name: word,
    callId: word,
    refusesBlank: true,
    userFirst: false,
    needsItemAfterReasoning: true,
    results: "next-message",
    resultsFirst: true,
    cacheMarks: { most: 4, never: ["thinking", "redacted_thinking"] },
    images: { side: 8_000, sideOfMany: { above: 20, side: 2_000 }, encodedBytes: 10_485_760, most: 100 },
    pdf: { pagesOfAll: 600, pagesOfSmall: { window: 200_000, pages: 100 } },
    requestBytes: 32_000_000,
    // The number of levels and of properties is not published.
    schemas: {
      constraints: [],
      formats: [...formats, "uri"],
      allRequired: false,
      recursive: false,
      depth: 32,
      properties: 5_000,
      optional: 24,
      unions: 16
    },
    sources: [
      ...textSources,
      { rule: "cacheMarks", url: "https://platform.claude.com/docs/en/build-with-claude/prompt-caching" },
      { rule: "schemas", url: "https://platform.claude.com/docs/en/build-with-claude/structured-outputs" },
      { rule: "schemas", url: "https://github.com/veryfront/veryfront-code/issues/3918", readOn },
      { rule: "schemas", url: "https://github.com/vercel/ai/pull/17268", readOn },
      { rule: "name", url: "https://platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use" },
      { rule: "refusesBlank", url: "https://github.com/NousResearch/hermes-agent/pull/63228", readOn },
      { rule: "refusesBlank", url: "https://github.com/anthropics/claude-code/issues/50082", readOn },
      { rule: "needsItemAfterReasoning", url: "https://github.com/tailcallhq/forgecode/issues/2107", readOn },
      { rule: "results", url: "https://github.com/anthropics/claude-code/issues/8612", readOn },
      { rule: "resultsFirst", url: "https://github.com/anthropics/claude-code/issues/8612", readOn },
      { rule: "images", url: "https://github.com/anthropics/claude-code/issues/12351", readOn },
      { rule: "images", url: "https://github.com/anthropics/claude-code/issues/24630", readOn },
      { rule: "images", url: "https://github.com/can1357/oh-my-pi/pull/10633", readOn },
      { rule: "images", url: "https://github.com/earendil-works/pi/pull/120", readOn },
      { rule: "pdf", url: "https://github.com/anthropics/claude-code/issues/6231", readOn },
      { rule: "pdf", url: "https://github.com/jikig-ai/soleur/issues/3350", readOn },
      { rule: "requestBytes", url: "https://github.com/jikig-ai/soleur/issues/3350", readOn },
      {
        rule: "requestBytes",
        url: "https://www.developersdigest.tech/errors/api/anthropic-api/413-request-too-large",
        readOn
      }
    ]
  },
  chat: {
    ...openAi,
    callId: /^[A-Za-z0-9_-]{1,40}$/,
    needsItemAfterReasoning: false,
    sources: [
      ...openAiSources,
      { rule: "name", url: "https://github.com/microsoft/semantic-kernel/issues/5320", readOn },
      { rule: "results", url: "https://platform.openai.com/docs/guides/function-calling" }
    ]
  },
  mistral: {
    name: word,
    callId: /^[A-Za-z0-9]{9}$/,
    refusesBlank: false,
    userFirst: false,
    userLast: true,
    needsItemAfterReasoning: false,
    results: "next-messages",
    answersResults: true,
    sources: [
      ...textSources,
      { rule: "callId", url: "https://github.com/anomalyco/opencode/issues/1680", readOn },
      { rule: "userLast", url: "https://github.com/NEKOparapa/AiNiee/issues/641", readOn },
      { rule: "answersResults", url: "https://github.com/NousResearch/hermes-agent/issues/20154", readOn }
    ]
  },
  responses: {
    ...openAi,
    callId: word,
    needsItemAfterReasoning: true,
    sources: [
      ...openAiSources,
      { rule: "needsItemAfterReasoning", url: "https://github.com/openai/openai-node/issues/1567", readOn }
    ]
  },
  gemini: {
    // Dots and colons are taken by some of Google's services only.
    name: common,
    callId: word,
    refusesBlank: false,
    userFirst: true,
    userLast: true,
    needsItemAfterReasoning: false,
    results: "next-message",
    pdf: { pages: 1_000, bytes: 52_428_800 },
    requestBytes: 100_000_000,
    schemas: geminiSchemas,
    sources: [
      ...textSources,
      { rule: "schemas", url: "https://ai.google.dev/gemini-api/docs/structured-output" },
      { rule: "schemas", url: "https://github.com/symfony/ai/issues/803", readOn },
      { rule: "name", url: "https://github.com/google-gemini/gemini-cli/issues/6704", readOn },
      { rule: "results", url: "https://ai.google.dev/gemini-api/docs/function-calling" },
      { rule: "userFirst", url: "https://ai.google.dev/gemini-api/docs/function-calling" },
      { rule: "pdf", url: "https://github.com/googleapis/python-genai/issues/353", readOn },
      { rule: "pdf", url: "https://github.com/suurt8ll/open_webui_functions/pull/267", readOn },
      {
        rule: "requestBytes",
        url: "https://blog.google/innovation-and-ai/technology/developers-tools/gemini-api-new-file-limits",
        readOn
      },
      { rule: "userLast", url: "https://github.com/crewAIInc/crewAI/pull/6973", readOn }
    ]
  },
  "gemini-interactions": {
    name: common,
    callId: word,
    refusesBlank: true,
    userFirst: true,
    userLast: true,
    needsItemAfterReasoning: false,
    results: "next-messages",
    schemas: geminiSchemas,
    sources: [
      ...textSources,
      { rule: "name", url: "https://github.com/kaitranntt/ccs/issues/25", readOn },
      { rule: "schemas", url: "https://github.com/googleapis/js-genai/issues/1571", readOn }
    ]
  },
  ollama: {
    name: common,
    callId: undefined,
    refusesBlank: false,
    userFirst: false,
    needsItemAfterReasoning: false,
    results: "next-messages",
    sources: textSources
  },
  "ai-sdk": {
    ...anyVendor,
    // The schemas that every vendor behind a package accepts.
    schemas: { ...openAiSchemas, constraints: [], formats: [], recursive: false },
    sources: [
      ...textSources,
      { rule: "needsItemAfterReasoning", url: "https://github.com/vercel/ai/issues/7099", readOn },
      { rule: "schemas", url: "https://developers.openai.com/api/docs/guides/structured-outputs" }
    ]
  },
  "effect-ai": anyVendor
}
