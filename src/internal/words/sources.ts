/**
 * Collects the sources of a reply, bounded and each once.
 */

import * as Contents from "../../Content.ts"
import type { Source } from "../../ContentModel.ts"
import * as Bounds from "../../kit/bounds.ts"
import { shorten } from "../../kit/text.ts"

/** A source as a vendor sent it. */
interface Given {
  readonly url?: string | undefined
  readonly title?: string | undefined
  readonly quote?: string | undefined
}

/** The sources of a reply, in their order. */
export class Sources {
  #all: Array<Source> = []

  /** Adds a source. One without an address or a title, beyond the bound, or known already is dropped. */
  add(given: Given): void {
    const source = sourceOf(given)
    if (source === undefined) return
    const isSame = (other: Source) => addressOf(other) === addressOf(source)
    const { quote } = source
    if (this.#all.some((other) => isSame(other) && (quote === undefined || other.quote === quote))) return
    // A page that a search found may be cited later, with the words that count.
    this.#all = this.#all.filter((other) => !isSame(other) || other.quote !== undefined)
    if (this.#all.length < Bounds.sourcesPerReply) this.#all.push(source)
  }

  all(): ReadonlyArray<Source> {
    return this.#all
  }
}

const addressOf = ({ title, url }: Source): string => url ?? title ?? ""

const sourceOf = ({ quote, title, url }: Given): Source | undefined => {
  const words = quote === undefined || quote === "" ? {} : { quote: shorten(quote, 2_000) }
  const name = title === undefined || title === "" ? undefined : { title: shorten(title, 500) }
  if (url !== undefined && isWeb(url)) return Contents.source({ url, ...name, ...words })
  return name === undefined ? undefined : Contents.source({ ...name, ...words })
}

/** Returns whether an address can be shown as a link: of the web, and of a length that browsers take. */
const isWeb = (url: string): boolean => url.length <= 4_096 && /^https?:\/\/[^\s]+$/i.test(url)
