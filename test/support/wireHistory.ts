/**
 * What vendors refuse in a conversation, as far as calls and their results go.
 *
 * A body is read as a list of things said, in turn groups, whatever the vendor
 * calls them; the rules are those their servers hold requests against.
 */

type Said =
  | { readonly kind: "user" | "assistant" }
  | { readonly kind: "call"; readonly id: string }
  | { readonly kind: "result"; readonly id: string }

/** What one message of the vendor's holds. */
type Group = ReadonlyArray<Said>

type Fields = { readonly [key: string]: unknown }
const isFields = (value: unknown): value is Fields =>
  typeof value === "object" && value !== null && !Array.isArray(value)
const list = (value: unknown): ReadonlyArray<Fields> => (Array.isArray(value) ? value.filter(isFields) : [])
const text = (value: unknown): string => (typeof value === "string" ? value : "")
const user: Said = { kind: "user" }
const assistant: Said = { kind: "assistant" }

const readers: { readonly [vendor: string]: (body: Fields) => ReadonlyArray<Group> } = {
  anthropic: (body) =>
    list(body["messages"]).map((message) =>
      list(message["content"]).map((block): Said => {
        if (block["type"] === "tool_use") return { kind: "call", id: text(block["id"]) }
        if (block["type"] === "tool_result") return { kind: "result", id: text(block["tool_use_id"]) }
        return message["role"] === "assistant" ? assistant : user
      })
    ),
  chat: (body) =>
    list(body["messages"]).flatMap((message): ReadonlyArray<Group> => {
      if (message["role"] === "system" || message["role"] === "developer") return []
      if (message["role"] === "tool") return [[{ kind: "result", id: text(message["tool_call_id"]) }]]
      if (message["role"] === "user") return [[user]]
      return [[assistant, ...list(message["tool_calls"]).map((call): Said => ({ kind: "call", id: text(call["id"]) }))]]
    }),
  // Results are told by order and name.
  ollama: (body) => {
    let calls = 0
    let results = 0
    return list(body["messages"]).flatMap((message): ReadonlyArray<Group> => {
      if (message["role"] === "system") return []
      if (message["role"] === "tool") return [[{ kind: "result", id: String(results++) }]]
      if (message["role"] === "user") return [[user]]
      return [[assistant, ...list(message["tool_calls"]).map((): Said => ({ kind: "call", id: String(calls++) }))]]
    })
  },
  google: (body) =>
    list(body["contents"]).map((content) =>
      list(content["parts"]).map((part): Said => {
        const { functionCall, functionResponse } = part
        if (isFields(functionCall)) return { kind: "call", id: text(functionCall["id"]) }
        if (isFields(functionResponse)) return { kind: "result", id: text(functionResponse["id"]) }
        return content["role"] === "model" ? assistant : user
      })
    ),
  "openai-responses": (body) =>
    list(body["input"]).flatMap((item): ReadonlyArray<Group> => {
      if (item["role"] === "system") return []
      if (item["type"] === "function_call") return [[{ kind: "call", id: text(item["call_id"]) }]]
      if (item["type"] === "function_call_output") return [[{ kind: "result", id: text(item["call_id"]) }]]
      return [[item["role"] === "user" ? user : assistant]]
    }),
  "google-interactions": (body) =>
    list(body["input"]).map((step): Group => {
      if (step["type"] === "function_call") return [{ kind: "call", id: text(step["id"]) }]
      if (step["type"] === "function_result") return [{ kind: "result", id: text(step["call_id"]) }]
      return [step["type"] === "user_input" ? user : assistant]
    })
}

/** What a vendor would refuse in a body; nothing when it would take it. */
export const faults = (vendor: string, body: unknown): ReadonlyArray<string> => {
  const read = readers[vendor] ?? readers["chat"]
  if (!isFields(body) || read === undefined) return [`${vendor}: no body`]
  const groups = read(body)
  const found: Array<string> = []
  if (groups.length === 0) found.push("nothing is said")
  if (groups[0]?.some(({ kind }) => kind === "assistant" || kind === "call")) found.push("the model speaks first")
  if (groups.some((group) => group.length === 0)) found.push("a message is empty")
  const last = groups.at(-1)?.at(-1)
  if (last?.kind === "assistant" || last?.kind === "call") found.push("the model speaks last")
  const open = new Set<string>()
  for (const said of groups.flat()) {
    if (said.kind === "call") {
      if (open.has(said.id)) found.push(`two calls '${said.id}'`)
      open.add(said.id)
    } else if (said.kind === "result") {
      if (!open.delete(said.id)) found.push(`a result '${said.id}' without its call`)
    } else if (open.size > 0 && said.kind === "user") {
      found.push(`calls ${[...open].join()} without their results`)
      open.clear()
    }
  }
  if (open.size > 0) found.push(`calls ${[...open].join()} without their results at the end`)
  // Anthropic wants all results of a message in the next one.
  if (vendor === "anthropic") {
    groups.forEach((group, index) => {
      const calls = group.filter(({ kind }) => kind === "call").length
      const results = groups[index + 1]?.filter(({ kind }) => kind === "result").length ?? 0
      if (calls > 0 && results !== calls) found.push(`${calls} calls, ${results} results in the next message`)
    })
  }
  return found.map((fault) => `${vendor}: ${fault}`)
}
