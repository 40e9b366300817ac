/**
 * Removes keys from texts for logs, events and models.
 *
 * Secrets are `Redacted` and never become text on purpose. These patterns catch secrets that leak by accident, such as
 * in the error message of a server: bearer tokens and the key formats of well-known vendors, in linear time.
 */

// Lazy repetitions with a lookahead, because greedy ones overflow the stack of the regex engine on megabytes of text.
const shapes: ReadonlyArray<RegExp> = [
  /\b(?:(?:g?sk|[pr]k|xai|hf|gh[ops]|github_pat|glpat|xox[abprs])[-_][\w-]{8}|AIza[\w-]{20}|AKIA[A-Z0-9]{12})[\w-]*?(?![\w-])/g,
  // A text that only begins like a token is matched as a whole and put back, so that its parts are not scanned again.
  /\beyJ[\w-]{8}[\w-]*?(?![\w-])(\.[\w-]{8}[\w-]*?(?![\w-])\.[\w-]*?(?![\w-])|)/g,
  // "basic" precedes many ordinary words; encoded credentials almost never consist of small letters only.
  /\b(?:[Bb]earer |[Bb]asic (?=[a-z._~+/-]*?[A-Z0-9=]))[\w.~+/=-]{8}[\w.~+/=-]*?(?![\w.~+/=-])/g,
  // The password in a URL, such as that of a database.
  /(?<=:\/\/[^\s/:]*?:)[^\s/@]+?(?=@)/g,
  // Other tokens stay: they may be page tokens, which the next request needs.
  /(?<=(?:api[-_ ]?key|(?:\b|(?:access|auth|refresh|session|(?<!inval)id)[-_]?)token|password|secret(?:[-_]?access[-_]?key)?)["']?\s{0,2}[:=]\s{0,2}["']?)(?!<redacted>)(?:(?!<\/)[^\s"',;&]){6}[^]*?(?=<\/|[\s"',;&]|$)/gi
]

/** Replaces texts that look like keys by `<redacted>`. */
export const redact = (text: string): string =>
  shapes.reduce((clean, shape) => clean.replace(shape, (found, rest) => (rest === "" ? found : "<redacted>")), text)

/**
 * Applies `clean` to every text in a value. Returns the same value if nothing changes. Keys inside foreign JSON are
 * cleaned, too, and keys that become equal collapse into one.
 */
export const deep = <A>(value: A, clean: (text: string) => string): A =>
  // Strings stay strings, JSON stays JSON and everything else keeps its shape, so the type does not change.
  walk(value, clean, maxDepth, false) as A

/** Returns whether a field holds foreign JSON, whose keys are data instead of our field names. */
export const holdsJson = (field: string): boolean => foreign.has(field)

const foreign: ReadonlySet<string> = new Set([
  "arguments",
  "context",
  "data",
  "details",
  "input",
  "metadata",
  "params",
  "raw",
  "result",
  "structuredContent",
  "structured_content",
  "value"
])

// Deeper than any configured limit on JSON, because unvisited text would leak.
const maxDepth = 1000

const walk = (value: unknown, clean: (text: string) => string, depth: number, isJson: boolean): unknown => {
  if (typeof value === "string") return clean(value)
  if (typeof value !== "object" || value === null || depth === 0) return value
  if (Array.isArray(value)) {
    let changed: Array<unknown> | undefined
    for (let index = 0; index < value.length; index++) {
      const item: unknown = value[index]
      const cleaned = walk(item, clean, depth - 1, isJson)
      if (cleaned !== item) (changed ??= value.slice())[index] = cleaned
    }
    return changed ?? value
  }
  const prototype: unknown = Object.getPrototypeOf(value)
  if ((prototype !== Object.prototype && prototype !== null) || (!isJson && isOpaque(value))) return value
  let isChanged = false
  const entries = Object.entries(value).map(([key, item]: [string, unknown]) => {
    const name = isJson ? clean(key) : key
    const cleaned = walk(item, clean, depth - 1, isJson || holdsJson(key))
    isChanged ||= cleaned !== item || name !== key
    return [name, cleaned]
  })
  return isChanged ? Object.fromEntries(entries) : value
}

// Bytes hold no text. Thinking is signed, so its vendor rejects it once it has changed.
const isOpaque = (value: object): boolean => "type" in value && (value.type === "thinking" || media.has(value.type))

const media: ReadonlySet<unknown> = new Set(["image", "audio", "video", "document"])
