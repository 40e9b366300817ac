/**
 * Holds a request against the rules of its vendor.
 *
 * The checks share the alphabets, lengths and sources of the rules with the adapters, and nothing else: how a request is
 * made to satisfy them is not known here.
 */

import * as Base64 from "effect/encoding/Base64"
import * as Result from "effect/Result"
import { imageSize } from "../../kit/imageHeader.ts"
import { isRecord, parseJson } from "../../kit/json.ts"
import { pdfPages } from "../../kit/pdfPages.ts"
import { utf8Length } from "../../kit/text.ts"
import { vendorRules, type VendorRules, type Wire } from "../../kit/vendorRules.ts"
import type { Rule, Violation } from "../RequestRules.ts"
import { checkSchema } from "./schemaChecks.ts"
import { type Part, type Reading, readers, type Turn } from "./wireReaders.ts"

type Report = (rule: Rule, path: string, detail: string) => void

/** Returns what a vendor would refuse in a body. */
export const violationsIn = (wire: Wire, body: unknown): ReadonlyArray<Violation> => {
  const found: Array<Violation> = []
  const report: Report = (rule, path, detail) => void found.push({ rule, path, detail })
  if (!isRecord(body)) {
    report("shape", "", "the body is no object")
    return found
  }
  const rules = vendorRules[wire]
  const reading = readers[wire](body)
  checkText(body, "", report)
  checkTools(rules, reading, report)
  for (const turn of reading.turns) checkTurn(rules, turn, report)
  checkIds(rules, reading.turns, report)
  checkResults(rules, reading.turns, report)
  checkHosted(reading.turns, report)
  checkOrder(rules, reading.turns, report)
  checkMarks(rules, reading.turns, report)
  checkImages(rules, reading.turns, report)
  checkFiles(rules, reading.turns, report)
  checkSize(rules, body, report)
  checkSchema(wire, rules.schemas, body, (path, detail) => report("schemas", path, detail))
  return found
}

/** Returns the parts of a turn, those of results included. */
const flat = (parts: ReadonlyArray<Part>): ReadonlyArray<Part> =>
  parts.flatMap((part) => (part.kind === "result" ? [part, ...flat(part.parts)] : [part]))

// ---------------------------------------------------------------- text

/** Checks every text and key of a body. */
const checkText = (value: unknown, path: string, report: Report): void => {
  if (typeof value === "string") {
    if (!value.isWellFormed()) report("text", path, "has half of a surrogate pair")
    if (value.includes("\0")) report("text", path, "has NUL")
    return
  }
  if (Array.isArray(value)) {
    value.forEach((item, at) => checkText(item, `${path}[${at}]`, report))
    return
  }
  if (!isRecord(value)) return
  for (const [key, item] of Object.entries(value)) {
    const at = path === "" ? key : `${path}.${key}`
    checkText(key, at, report)
    checkText(item, at, report)
  }
}

/** White space in Python that is none in JavaScript. */
const separators = "\u001c\u001d\u001e\u001f\u0085"

const isBlank = (text: string): boolean =>
  Array.from(text).every((character) => character.trim() === "" || separators.includes(character))

// ---------------------------------------------------------------- names and tools

const checkTools = ({ name }: VendorRules, { tools, turns }: Reading, report: Report): void => {
  const seen = new Set<string>()
  for (const tool of tools) {
    if (!name.test(tool.name)) report("name", tool.path, `${JSON.stringify(tool.name)} is no name of a tool`)
    if (seen.has(tool.name)) report("name", tool.path, `there are two tools '${tool.name}'`)
    seen.add(tool.name)
  }
  if (tools.length > 0) return
  for (const part of turns.flatMap(({ parts }) => parts)) {
    if (part.kind === "call" || part.kind === "result") report("shape", part.path, `a ${part.kind} without tools`)
  }
}

const checkTurn = (rules: VendorRules, { parts, path, role }: Turn, report: Report): void => {
  if (role === "unknown") report("shape", path, "has no known role")
  if (parts.length === 0) report("shape", path, "is empty")
  for (const part of flat(parts)) {
    if (part.kind === "text" && rules.refusesBlank && isBlank(part.text)) report("refusesBlank", part.path, "is blank")
    if (part.kind === "reasoning" && !part.isSigned) report("shape", part.path, "is reasoning without its signature")
    if (part.kind === "call") checkCall(rules, role, part, report)
    if (part.kind !== "result") continue
    if (role !== "tool" && role !== "user") report("results", part.path, "is a result of the model")
    if (part.name !== undefined && !rules.name.test(part.name)) {
      report("name", part.path, `${JSON.stringify(part.name)} is no name of a call`)
    }
  }
}

const checkCall = (
  { name }: VendorRules,
  role: Turn["role"],
  call: Extract<Part, { readonly kind: "call" }>,
  report: Report
): void => {
  if (role !== "model") report("shape", call.path, "is a call that is not the model's")
  if (!name.test(call.name)) report("name", call.path, `${JSON.stringify(call.name)} is no name of a call`)
  const input = typeof call.input === "string" ? parsed(call.input) : call.input
  if (isRecord(input)) checkText(input, `${call.path}.input`, report)
  else report("shape", call.path, "has an input that is no JSON object")
}

const parsed = (text: string): unknown => {
  const result = parseJson(text, 1_000)
  return result._tag === "Success" ? result.success : undefined
}

// ---------------------------------------------------------------- calls and results

const checkIds = ({ callId }: VendorRules, turns: ReadonlyArray<Turn>, report: Report): void => {
  if (callId === undefined) return
  const seen = new Set<string>()
  for (const part of turns.flatMap(({ parts }) => parts)) {
    if ((part.kind !== "call" && part.kind !== "result") || part.id === undefined) continue
    if (!callId.test(part.id)) report("callId", part.path, `${JSON.stringify(part.id)} is no id of a call`)
    if (part.kind === "result") continue
    if (seen.has(part.id)) report("callId", part.path, `there are two calls '${part.id}'`)
    seen.add(part.id)
  }
}

type Call = Extract<Part, { readonly kind: "call" }>
type Result = Extract<Part, { readonly kind: "result" }>
const isCall = (part: Part): part is Call => part.kind === "call"
const isResult = (part: Part): part is Result => part.kind === "result"

/** Checks that the turn after calls has one result for each, and that no result stands elsewhere. */
const checkResults = (rules: VendorRules, turns: ReadonlyArray<Turn>, report: Report): void => {
  const said = turns.filter(({ role }) => role !== "system")
  said.forEach(({ parts }, at) => {
    const calls = parts.filter(isCall)
    const answers = said[at + 1]?.parts.filter(isResult) ?? []
    for (const call of calls) {
      const own = answersOf(call, calls, answers)
      if (own.length === 1) continue
      const count = own.length === 0 ? "no result" : `${own.length} results`
      report("results", call.path, `the call has ${count} right after it`)
    }
    const before = said[at - 1]?.parts.filter(isCall) ?? []
    const results = parts.filter(isResult)
    results.forEach((result) => {
      if (!before.some((call) => answersOf(call, before, results).includes(result))) {
        report("results", result.path, "the result has no call right before it")
      }
    })
    const last = parts.findLastIndex(isResult)
    if (rules.resultsFirst && parts.slice(0, Math.max(0, last)).some((part) => !isResult(part))) {
      report("results", parts[last]?.path ?? "", "stands behind other content")
    }
  })
}

/** Returns the results of a call, by id, or by place in formats without ids. */
const answersOf = (call: Call, calls: ReadonlyArray<Call>, answers: ReadonlyArray<Result>): ReadonlyArray<Result> => {
  if (call.id !== undefined) return answers.filter(({ id }) => id === call.id)
  const answer = answers[calls.indexOf(call)]
  const isLast = call === calls.at(-1)
  const more = isLast ? answers.slice(calls.length) : []
  return answer === undefined || (answer.name !== undefined && answer.name !== call.name) ? [] : [answer, ...more]
}

/** Checks that a call that the vendor ran stands with its result. It may be open at the end, where the vendor continues. */
const checkHosted = (turns: ReadonlyArray<Turn>, report: Report): void =>
  turns.forEach(({ parts }, at) => {
    const open = new Map<string, string>()
    for (const part of parts) {
      if (part.kind !== "hosted") continue
      if (!part.isResult) open.set(part.id, part.path)
      else if (!open.delete(part.id)) report("results", part.path, "the result has no call of the vendor before it")
    }
    if (at === turns.length - 1) return
    for (const path of open.values()) report("results", path, "the vendor ran the call, and its result is missing")
  })

// ---------------------------------------------------------------- order

const checkOrder = (rules: VendorRules, turns: ReadonlyArray<Turn>, report: Report): void => {
  const said = turns.filter(({ role }) => role !== "system")
  const first = said[0]
  if (first === undefined) report("shape", "", "nothing is said")
  if (rules.userFirst && first?.role === "model") report("userFirst", first.path, "the model speaks first")
  const end = said.at(-1)
  if (rules.userLast && end?.role === "model") report("userLast", end.path, "the model speaks last")
  said.forEach(({ parts, path, role }, at) => {
    const last = parts.at(-1)
    if (rules.needsItemAfterReasoning && last?.kind === "reasoning") {
      report("needsItemAfterReasoning", last.path, "nothing of the model follows the reasoning")
    }
    if (rules.answersResults && role === "user" && said[at - 1]?.role === "tool") {
      report("answersResults", path, "the user speaks right after results")
    }
  })
}

const checkMarks = ({ cacheMarks }: VendorRules, turns: ReadonlyArray<Turn>, report: Report): void => {
  const marked = turns.flatMap(({ parts }) => flat(parts)).filter(({ hasMark }) => hasMark)
  if (cacheMarks === undefined) return
  if (marked.length > cacheMarks.most) {
    report("cacheMarks", marked[cacheMarks.most]?.path ?? "", `there are ${marked.length} marks`)
  }
  for (const part of marked) {
    if (part.kind === "reasoning" && cacheMarks.never.includes(part.type)) {
      report("cacheMarks", part.path, `a block of ${part.type} has a mark`)
    }
    if (part.kind === "text" && isBlank(part.text)) report("cacheMarks", part.path, "a blank text has a mark")
  }
}

// ---------------------------------------------------------------- images

const checkImages = ({ images: limits }: VendorRules, turns: ReadonlyArray<Turn>, report: Report): void => {
  if (limits === undefined) return
  const images = turns
    .flatMap(({ parts }) => flat(parts))
    .flatMap((part) => (part.kind === "media" && part.isImage ? [part] : []))
  if (images.length > (limits.most ?? Infinity)) report("images", "", `there are ${images.length} images`)
  const isMany = limits.sideOfMany !== undefined && images.length > limits.sideOfMany.above
  const side = (isMany ? limits.sideOfMany?.side : limits.side) ?? Infinity
  for (const { data, path } of images) {
    if (data === undefined) continue
    if (data.length > (limits.encodedBytes ?? Infinity)) report("images", path, `has ${data.length} bytes as base64`)
    const size = Result.map(Base64.decode(data), imageSize)
    if (Result.isFailure(size)) report("shape", path, "is no base64")
    else if (size.success !== undefined && Math.max(size.success.width, size.success.height) > side) {
      report("images", path, `has ${size.success.width} × ${size.success.height} pixels, ${side} are allowed`)
    }
  }
}

// ---------------------------------------------------------------- files and the whole

/** The first bytes of a PDF file as base64. */
const pdfStart = "JVBERi0"

const checkFiles = ({ pdf: limits }: VendorRules, turns: ReadonlyArray<Turn>, report: Report): void => {
  if (limits === undefined) return
  const { bytes: most = Infinity, bytesOfAll = Infinity, pages: allowed = Infinity, pagesOfAll = Infinity } = limits
  const sum = { bytes: 0, pages: 0 }
  for (const part of turns.flatMap(({ parts }) => flat(parts))) {
    if (part.kind !== "media" || part.data?.startsWith(pdfStart) !== true) continue
    const file = Result.getOrElse(Base64.decode(part.data), () => new Uint8Array())
    const pages = pdfPages(file) ?? 0
    sum.bytes += file.length
    sum.pages += pages
    if (file.length > most) report("pdf", part.path, `has ${file.length} bytes`)
    if (pages > allowed) report("pdf", part.path, `has ${pages} pages`)
  }
  if (sum.bytes > bytesOfAll) report("pdf", "", `the files have ${sum.bytes} bytes`)
  if (sum.pages > pagesOfAll) report("pdf", "", `the files have ${sum.pages} pages`)
}

const checkSize = ({ requestBytes }: VendorRules, body: object, report: Report): void => {
  if (requestBytes === undefined) return
  const bytes = utf8Length(JSON.stringify(body))
  if (bytes > requestBytes) report("requestBytes", "", `has ${bytes} bytes`)
}
