/**
 * Reads skill packs from any source of files.
 *
 * A name is looked up among the existing folders and never joined to a path. The path of a file is checked as text
 * before it is passed on.
 */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Result from "effect/Result"
import * as Bounds from "../../kit/bounds.ts"
import {
  FileTooLarge,
  InvalidSkillPath,
  SkillFileNotFound,
  SkillPackInvalid,
  SkillPackNotFound
} from "../../KernelError.ts"
import * as Media from "../../Media.ts"
import type {
  Files,
  Folder,
  Listing,
  LoadedPack,
  Options,
  Problem,
  SkillPackStoreShape,
  SkillPack,
  Warning
} from "./skillPackType.ts"
import { cut, shorten } from "../../kit/text.ts"
import * as FrontMatter from "./frontMatter.ts"

const tops = ["scripts", "references", "assets"] as const

/** Maximum number of files listed for each folder of a pack. */
const maxIndexed = 1_000

/** Creates a store over a source of files. */
export const make = (files: Files, options: Options = {}): SkillPackStoreShape => {
  const isStrict = options.strict === true
  return {
    list: list(files, isStrict),
    load: (name) => load(files, isStrict, name),
    readFile: (name, path) => readFile(files, isStrict, name, path)
  }
}

const list = Effect.fnUntraced(function* (files: Files, isStrict: boolean) {
  const problems: Array<Problem> = []
  const folders: Array<Folder> = []
  for (const root of files.roots) {
    const names = yield* Effect.result(files.folders(root))
    if (Result.isFailure(names)) problems.push({ dir: root, code: "unreadable", reason: names.failure })
    else for (const name of names.success.toSorted()) folders.push({ root, name })
  }
  const found = yield* Effect.forEach(folders, (folder) => inspect(files, folder), { concurrency: 16 })
  const listing = together(
    found.filter((inspected) => inspected !== undefined),
    problems
  )
  return isStrict ? yield* approved("", listing) : listing
})

const find = Effect.fnUntraced(function* (files: Files, isStrict: boolean, name: string) {
  // No other name can be listed, so no other is looked up.
  if (!isName(name)) return yield* new SkillPackNotFound({ name: shorten(name, 256) })
  let refused: InvalidSkillPath | undefined
  for (const root of files.roots) {
    const names = yield* Effect.orElseSucceed(files.folders(root), (): ReadonlyArray<string> => [])
    if (!names.includes(name)) continue
    const folder = { root, name }
    const inspected = yield* inspect(files, folder)
    if (inspected === undefined) continue
    if (isStrict) yield* approved(name, { skills: [], ...inspected })
    if (inspected.pack !== undefined) return { folder, pack: inspected.pack }
    refused ??= inspected.refused
  }
  return yield* refused ?? new SkillPackNotFound({ name })
})

const load = Effect.fnUntraced(function* (files: Files, isStrict: boolean, name: string) {
  const { folder, pack } = yield* find(files, isStrict, name)
  const file = yield* readManifest(files, folder, Bounds.frontMatterBytes + Bounds.skillFileBytes + slack)
  const parts = file === undefined ? undefined : Result.getOrUndefined(FrontMatter.split(file.text, file.isWhole))
  // The file was removed in the meantime.
  if (file === undefined || parts === undefined) return yield* new SkillPackNotFound({ name })
  const body = cut(parts.body, Bounds.skillFileBytes)
  const [scripts, references, assets] = yield* Effect.forEach(tops, (top) => index(files, folder, top))
  const loaded: LoadedPack = {
    ...pack,
    body,
    bodyTruncated: !file.isWhole || body.length < parts.body.length,
    files: { scripts: scripts ?? [], references: references ?? [], assets: assets ?? [] }
  }
  return loaded
})

const readFile = Effect.fnUntraced(function* (files: Files, isStrict: boolean, name: string, path: string) {
  const reason = refusal(path)
  if (reason !== undefined) return yield* new InvalidSkillPath({ path: shorten(path, 256), reason })
  const { folder } = yield* find(files, isStrict, name)
  const limit = Bounds.skillFileBytes
  const found = yield* files.read(folder, path, limit)
  if (Option.isNone(found)) return yield* new SkillFileNotFound({ name, path })
  const { bytes, size } = found.value
  if (size > limit) return yield* new FileTooLarge({ path, bytes: size, limit })
  return contentOf(path, bytes)
})

// ---------------------------------------------------------------- folders

interface Inspected {
  readonly dir: string
  /** Absent if there is a problem. */
  readonly pack: SkillPack | undefined
  readonly problems: ReadonlyArray<Problem>
  readonly warnings: ReadonlyArray<Warning>
  /** The reason why the folder must not be read. */
  readonly refused: InvalidSkillPath | undefined
}

/** Inspects one folder. Undefined if it has no SKILL.md. */
const inspect = Effect.fnUntraced(function* (files: Files, folder: Folder) {
  const dir = folder.root === "" ? folder.name : `${folder.root}/${folder.name}`
  const bad = (code: Problem["code"], reason: string, refused?: InvalidSkillPath): Inspected => ({
    dir,
    pack: undefined,
    problems: [{ dir, code, reason }],
    warnings: [],
    refused
  })
  const read = yield* Effect.result(readManifest(files, folder, Bounds.frontMatterBytes + 1))
  if (Result.isFailure(read)) return bad("invalid_path", read.failure.reason, read.failure)
  const file = read.success
  if (file === undefined) return undefined
  const parts = FrontMatter.split(file.text, file.isWhole)
  if (Result.isFailure(parts)) return bad("invalid_front_matter", parts.failure)
  const fields = FrontMatter.fields(parts.success.head, { nodes: Bounds.yamlNodes, depth: Bounds.jsonDepth })
  return Result.isFailure(fields) ? bad("invalid_front_matter", fields.failure) : judge(folder, dir, fields.success)
})

/** Returns the start of SKILL.md or skill.md, not ending inside a character. */
const readManifest = Effect.fnUntraced(function* (files: Files, folder: Folder, bytes: number) {
  for (const name of ["SKILL.md", "skill.md"]) {
    const found = yield* files.read(folder, name, bytes)
    if (Option.isNone(found)) continue
    const isWhole = found.value.size <= found.value.bytes.byteLength
    // In streaming mode the decoder holds back the first bytes of a character that was cut.
    return { text: new TextDecoder().decode(found.value.bytes, { stream: !isWhole }), isWhole }
  }
  return undefined
})

/** For the two `---` lines, line ends and a byte order mark. */
const slack = 1_024

const known = new Set(["name", "description", "license", "compatibility", "metadata", "allowed-tools"])

const judge = (folder: Folder, dir: string, fields: ReadonlyMap<string, FrontMatter.Field>): Inspected => {
  const problems: Array<Problem> = []
  const bad = (code: Problem["code"], reason: string) => problems.push({ dir, code, reason })
  const textOf = (key: string): string | undefined => {
    const field = fields.get(key)
    if (field === undefined || typeof field === "string") return field
    bad("invalid_front_matter", `'${key}' is not a string`)
    return undefined
  }

  /** Absent is the same as empty; null means nested too deeply. */
  const fieldOf = (key: string): FrontMatter.Field => {
    const field = fields.get(key)
    return field === undefined ? "" : field
  }

  const name = fields.get("name")
  if (typeof name !== "string" || !isName(name)) {
    bad("invalid_name", "a name has 1 to 64 lower-case letters, digits and single inner hyphens")
  } else if (name !== folder.name) bad("name_mismatch", `the name '${name}' is not that of its folder`)
  const description = fields.get("description")
  if (typeof description !== "string" || description.trim() === "" || isLonger(description, 1_024)) {
    bad("invalid_description", "a description has 1 to 1024 characters")
  }
  const license = textOf("license")
  const compatibility = textOf("compatibility")
  if (compatibility !== undefined && (compatibility === "" || isLonger(compatibility, 500))) {
    bad("invalid_front_matter", "'compatibility' has 1 to 500 characters")
  }
  const metadata = fieldOf("metadata")
  if (!(metadata instanceof Map) && metadata !== "")
    bad("invalid_front_matter", "'metadata' is not a mapping of strings")
  const allowed = fieldOf("allowed-tools")
  if (allowed instanceof Map || allowed === null) bad("invalid_front_matter", "'allowed-tools' is not a string")

  const warnings = [...fields.keys()]
    .filter((field) => !known.has(field))
    .map((field): Warning => ({ dir, code: "unknown_field", field }))
  const isFine = problems.length === 0 && typeof name === "string" && typeof description === "string"
  const pack: SkillPack | undefined = isFine
    ? {
        name,
        description,
        ...(license === undefined ? {} : { license }),
        ...(compatibility === undefined ? {} : { compatibility }),
        metadata: metadata instanceof Map ? metadata : new Map(),
        allowedTools:
          typeof allowed === "string" ? allowed.split(/\s+/).filter((tool) => tool !== "") : listOf(allowed),
        location: dir
      }
    : undefined
  return { dir, pack, problems, warnings, refused: undefined }
}

const listOf = (field: FrontMatter.Field): ReadonlyArray<string> => (Array.isArray(field) ? field : [])

const isName = (name: string): boolean => name.length <= 64 && /^[a-z0-9]+(?:-[a-z0-9]+)*$/.test(name)

/** Counts code points, but only in texts that may be too long. */
const isLonger = (text: string, limit: number): boolean => text.length > limit && Array.from(text).length > limit

// ---------------------------------------------------------------- listing

const together = (found: ReadonlyArray<Inspected>, problems: Array<Problem>): Listing => {
  const skills = new Map<string, SkillPack>()
  for (const { dir, pack, problems: own } of found) {
    problems.push(...own)
    if (pack === undefined) continue
    const first = skills.get(pack.name)
    if (first === undefined) skills.set(pack.name, pack)
    else problems.push({ dir, code: "duplicate_name", reason: `'${pack.name}' is already in ${first.location}` })
  }
  return {
    skills: [...skills.values()].toSorted((a, b) => (a.name < b.name ? -1 : 1)),
    problems,
    warnings: found.flatMap(({ warnings }) => warnings)
  }
}

/** Fails with the problems and warnings of a listing, for a strict store. */
const approved = (name: string, listing: Listing): Effect.Effect<Listing, SkillPackInvalid> => {
  const problems = [
    ...listing.problems.map(({ code, dir, reason }) => `${dir}: ${code}, ${reason}`),
    ...listing.warnings.map(({ code, dir, field }) => `${dir}: ${code} '${field}'`)
  ]
  const [first] = [...listing.problems, ...listing.warnings]
  return first === undefined
    ? Effect.succeed(listing)
    : Effect.fail(new SkillPackInvalid({ name: name === "" ? (first.dir.split("/").at(-1) ?? "") : name, problems }))
}

// ---------------------------------------------------------------- files

/** Returns the reason why a path is rejected. */
const refusal = (path: string): string | undefined => {
  const segments = path.split("/", 9)
  const [top] = segments
  if (!tops.some((known) => known === top)) return `it is not under ${tops.join("/, ")}/`
  if (segments.length < 2 || segments.length > 8) return "it has to have 2 to 8 segments"
  for (const segment of segments) {
    if (segment === "" || segment.startsWith(".")) return "a segment is empty or begins with a dot"
    if (segment.length > 255) return "a segment is too long"
    if (/[\\%:\p{Cc}]/u.test(segment)) return "a character in it is not allowed"
  }
  return undefined
}

const index = (files: Files, folder: Folder, top: string): Effect.Effect<ReadonlyArray<string>> =>
  Effect.map(files.index(folder, top, maxIndexed), (paths) =>
    paths.filter((path) => refusal(path) === undefined).toSorted()
  )

/** Returns UTF-8 text as text, and media by file name or for binary data. */
const contentOf = (path: string, bytes: Uint8Array): string | Media.Media => {
  const mimeType = Media.mimeTypeOf(path)
  const filename = path.split("/").at(-1) ?? path
  if (mimeType !== "text/plain" && mimeType !== "application/octet-stream") {
    return Media.fromBytes(bytes, mimeType, { metadata: { filename } })
  }
  const text = Result.try(() => new TextDecoder("utf-8", { fatal: true }).decode(bytes))
  return Result.isSuccess(text) && !text.success.includes("\0")
    ? text.success
    : Media.fromBytes(bytes, mimeType, { metadata: { filename } })
}

// ---------------------------------------------------------------- memory

/** Creates a source of files in memory, with one root. */
export const inMemory = (
  given: { readonly [path: string]: string | Uint8Array } | ReadonlyMap<string, string | Uint8Array>
): Files => {
  const files = new Map<string, Uint8Array>()
  for (const [path, content] of isMap(given) ? given : Object.entries(given)) {
    files.set(path, typeof content === "string" ? new TextEncoder().encode(content) : content.slice())
  }
  const folders = [
    ...new Set([...files.keys()].flatMap((path) => (path.includes("/") ? [path.slice(0, path.indexOf("/"))] : [])))
  ]
  return {
    roots: [""],
    folders: () => Effect.succeed(folders),
    read: (folder, path, bytes) =>
      Effect.sync(() =>
        Option.map(Option.fromUndefinedOr(files.get(`${folder.name}/${path}`)), (file) => ({
          bytes: file.slice(0, bytes),
          size: file.byteLength
        }))
      ),
    index: (folder, under, limit) =>
      Effect.sync(() => {
        const start = `${folder.name}/${under}/`
        const found = [...files.keys()].filter((path) => path.startsWith(start))
        return found.slice(0, limit).map((path) => path.slice(folder.name.length + 1))
      })
  }
}

const isMap = (
  given: { readonly [path: string]: string | Uint8Array } | ReadonlyMap<string, string | Uint8Array>
): given is ReadonlyMap<string, string | Uint8Array> => given instanceof Map
