/** Reports that commands write into a folder, each once and for all. */

import * as Effect from "effect/Effect"
import * as Option from "effect/Option"
import * as Schema from "effect/Schema"
import { readdir, readFile, stat } from "node:fs/promises"
import { join } from "node:path"

/** Reports of one kind in a folder. */
export interface ReportFiles<A> {
  /** Returns what is kept of the newest reports, the newest first. Omits files that are not reports. */
  readonly newest: Effect.Effect<ReadonlyArray<A>>
  /** Returns a report by the name of its file. */
  readonly find: (file: string) => Effect.Effect<Option.Option<A>>
}

const mostBytes = 4 * 1024 * 1024

/** Returns the reports of a folder whose names match a pattern. */
export const make = <A>(
  folder: string,
  { most, name, schema }: { readonly name: RegExp; readonly most: number; readonly schema: Schema.Codec<A, unknown> }
): ReportFiles<A & { readonly file: string }> => {
  const decode = Schema.decodeUnknownOption(Schema.fromJsonString(schema))
  const read = async (file: string): Promise<Option.Option<A & { readonly file: string }>> => {
    const path = join(folder, file)
    try {
      if (!name.test(file) || (await stat(path)).size > mostBytes) return Option.none()
      return Option.map(decode(await readFile(path, "utf8")), (report) => ({ ...report, file }))
    } catch {
      return Option.none()
    }
  }
  return {
    find: (file) => Effect.promise(() => read(file)),
    newest: Effect.promise(async () => {
      const files = await readdir(folder).catch(() => [])
      const newest = files.filter((file) => name.test(file)).toSorted()
      const reports = await Promise.all(newest.slice(-most).map(read))
      return reports.flatMap(Option.toArray).toReversed()
    })
  }
}
