/**
 * Keeps keys out of what is told (S-7).
 *
 * Secrets are Redacted values and never become text on purpose. This catches
 * those that come back by accident, in the message of somebody else's error:
 * bearer tokens and the key shapes of well-known vendors, in linear time.
 */

// A loop that looks for its end at each step keeps no way back for each: a greedy one runs out of stack on some megabytes.
const shapes: ReadonlyArray<RegExp> = [
  /\b(?:(?:g?sk|[pr]k|xai|hf|gh[ops]|github_pat|glpat|xox[abprs])[-_][\w-]{8}|AIza[\w-]{20}|AKIA[A-Z0-9]{12})[\w-]*?(?![\w-])/g,
  // What only begins like it is taken as a whole and given back: it may begin so again and again.
  /\beyJ[\w-]{8}[\w-]*?(?![\w-])(\.[\w-]{8}[\w-]*?(?![\w-])\.[\w-]*?(?![\w-])|)/g,
  // Many a word stands behind "basic"; what is encoded has hardly ever small letters only.
  /\b(?:[Bb]earer |[Bb]asic (?=[a-z._~+/-]*?[A-Z0-9=]))[\w.~+/=-]{8}[\w.~+/=-]*?(?![\w.~+/=-])/g,
  // The password of a URL, such as that of a database.
  /(?<=:\/\/[^\s/:]*?:)[^\s/@]+?(?=@)/g,
  // A token by any other name may be that of a page, which is needed to ask for the next.
  /(?<=(?:api[-_ ]?key|(?:\b|(?:access|auth|refresh|session|(?<!inval)id)[-_]?)token|password|secret(?:[-_]?access[-_]?key)?)["']?\s{0,2}[:=]\s{0,2}["']?)(?!<redacted>)(?:(?!<\/)[^\s"',;&]){6}[^]*?(?=<\/|[\s"',;&]|$)/gi
]

/** The text with everything that looks like a key replaced. */
export const redact = (text: string): string =>
  shapes.reduce((clean, shape) => clean.replace(shape, (found, rest) => (rest === "" ? found : "<redacted>")), text)

/**
 * The value with `clean` applied to every text in it; the same value when nothing changes. A key is a text where it is
 * somebody else's; two that are the same once they are clean are one.
 */
export const deep = <A>(value: A, clean: (text: string) => string): A =>
  // Texts become texts, JSON becomes JSON and everything else keeps its shape, so the type stays what it is.
  walk(value, clean, maxDepth, false) as A

/** Tells whether a field of ours holds the JSON of others: the keys in there are theirs, and no names of ours. */
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

// Deeper than any limit on JSON anybody sets: what is not looked at would be shown.
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

// Bytes hold no text to look at, and thinking is signed: changed, its vendor would refuse it.
const isOpaque = (value: object): boolean => "type" in value && (value.type === "thinking" || media.has(value.type))

const media: ReadonlySet<unknown> = new Set(["image", "audio", "video", "document"])
