/**
 * Finds places in texts: personal data, secrets, banned phrases, and instructions that are addressed to a model.
 *
 * Detectors are rules, not models: they take milliseconds for a long page, and miss what no rule describes. `docs/recipes/guards.md` says
 * how much they find in the corpora of the repository.
 *
 * @since 0.1.0
 */

import { injectionsIn } from "./internal/injections.ts"
import { cardsIn, emailsIn, ibansIn, phonesIn } from "./internal/personalData.ts"
import { phrasesIn } from "./internal/phraseList.ts"
import { secretsIn } from "./internal/secretShapes.ts"

/**
 * A place in a text, in UTF-16 units. It never holds the text itself, so it can be logged.
 *
 * @category models
 * @since 0.1.0
 */
export interface Finding {
  /** Such as `email`, `iban`, `secret` or `injection`: lower-case letters and hyphens. */
  readonly kind: string
  readonly start: number
  readonly end: number
}

/**
 * Finds places in a text.
 *
 * @category models
 * @since 0.1.0
 */
export interface Detector {
  readonly find: (text: string) => ReadonlyArray<Finding>
  /** The length of the longest finding. A guard of a streamed reply holds back this many characters. */
  readonly reach: number
}

/**
 * Creates a detector from a regular expression with the flag `g`. A `check` confirms each match, such as a checksum.
 *
 * @example
 * const employee = Detector.pattern("employee", /\bE-\d{6}\b/g, { reach: 8 })
 *
 * @category constructors
 * @since 0.1.0
 */
export const pattern = (
  kind: string,
  expression: RegExp,
  { check = () => true, reach }: { readonly reach: number; readonly check?: ((match: string) => boolean) | undefined }
): Detector => ({
  reach,
  find: (text) =>
    Array.from(text.matchAll(expression), (match) => ({ match: match[0], start: match.index }))
      .filter(({ match }) => match !== "" && check(match))
      .map(({ match, start }) => ({ kind, start, end: start + match.length }))
})

/**
 * Combines detectors. Where findings overlap, the one that begins first stays, or the longer one.
 *
 * @category combinators
 * @since 0.1.0
 */
export const all = (...detectors: ReadonlyArray<Detector>): Detector => ({
  reach: Math.max(1, ...detectors.map(({ reach }) => reach)),
  find: (text) => {
    const found = detectors.flatMap(({ find }) => find(text)).sort((a, b) => a.start - b.start || b.end - a.end)
    const kept: Array<Finding> = []
    for (const finding of found) if (finding.start >= (kept.at(-1)?.end ?? 0)) kept.push(finding)
    return kept
  }
})

/**
 * E-mail addresses.
 *
 * @category detectors
 * @since 0.1.0
 */
export const emails: Detector = { reach: 128, find: emailsIn }

/**
 * Phone numbers: international ones, those of North America, those that begin with 0, and digits behind a word such as
 * `Tel`.
 *
 * @category detectors
 * @since 0.1.0
 */
export const phones: Detector = { reach: 32, find: phonesIn }

/**
 * IBANs with the length of their country and a right checksum.
 *
 * @category detectors
 * @since 0.1.0
 */
export const ibans: Detector = { reach: 48, find: ibansIn }

/**
 * Numbers of payment cards with the prefix and length of a network and a right Luhn digit.
 *
 * @category detectors
 * @since 0.1.0
 */
export const cards: Detector = { reach: 40, find: cardsIn }

/**
 * Words and phrases of a list, as whole words, in any case and with any white space between their words.
 *
 * @category constructors
 * @since 0.1.0
 */
export const phrases = (kind: string, list: ReadonlyArray<string>): Detector => ({
  // White space between words may be longer than in the list.
  reach: Math.max(1, ...list.map(({ length }) => length + 8)),
  find: phrasesIn(kind, list)
})

/**
 * E-mail addresses, phone numbers, IBANs, cards, and the given names of people.
 *
 * @category constructors
 * @since 0.1.0
 */
export const personalData = ({ names = [] }: { readonly names?: ReadonlyArray<string> | undefined } = {}): Detector =>
  all(emails, ibans, cards, phones, { ...phrases("name", names), find: phrasesIn("name", names, "s?") })

/**
 * Keys of vendors, private keys, tokens, passwords in addresses and assignments, and long random words.
 *
 * @category detectors
 * @since 0.1.0
 */
export const secrets: Detector = { reach: 256, find: secretsIn }

/**
 * Sentences that give instructions to a model, in English, German, French, Spanish, Italian, Portuguese, Dutch, Polish,
 * Russian, Chinese and Japanese, and forged turns of a conversation. Letters of other alphabets, digits between letters,
 * spread letters, invisible characters and Base64 do not hide them.
 *
 * @category detectors
 * @since 0.1.0
 */
export const injections: Detector = { reach: 256, find: injectionsIn }
