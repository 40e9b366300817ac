/** Finds personal data that has a form: addresses, phone numbers, accounts and cards. */

import type { Finding } from "../Detector.ts"

const found = (kind: string, start: number, text: string): Finding => ({ kind, start, end: start + text.length })

// ---------------------------------------------------------------- e-mail

// Only the beginning of a word is tried, so a long word without "@" is read once.
const email =
  /(?<![\p{L}\p{N}._%+-])[\p{L}\p{N}_%+][\p{L}\p{N}._%+'-]{0,63}@(?:[\p{L}\p{N}](?:[\p{L}\p{N}-]{0,61}[\p{L}\p{N}])?\.){1,8}\p{L}{2,24}(?![\p{L}\p{N}])/gu

/** Names of pictures with their scale, and accounts of machines that every clone address has. */
const noPerson = /^(?:git|hg)@|@\dx\.|\.(?:png|jpe?g|gif|svg|webp|avif)$/i

/** Returns the e-mail addresses, without the passwords of URLs. */
export const emailsIn = (text: string): ReadonlyArray<Finding> =>
  Array.from(text.matchAll(email))
    .filter(
      ({ 0: match, index }) =>
        !noPerson.test(match) && !/:\/\/[^\s/]{0,64}$/.test(text.slice(Math.max(0, index - 70), index))
    )
    .map(({ 0: match, index }) => found("email", index, match))

// ---------------------------------------------------------------- phone

const phoneForms: ReadonlyArray<RegExp> = [
  /(?<![\w+.,])(?:\+|00(?=[1-9]))[1-9](?:[ ().\u00a0\u2011/-]{0,3}\d){6,14}(?![\d@]|[.,-]\d)/g,
  /(?<![\w.,/-])(?:1[ .-])?(?:\([2-9]\d{2}\)[ ]?|[2-9]\d{2}[ .-])[2-9]\d{2}[ .-]\d{4}(?![\w-]|[.,]\d)/g,
  /(?<![\w.,/:-])\(?0[1-9]\d{0,4}\)?(?:[ \u00a0./-]{1,3}\d{2,8}){1,5}(?![\w-]|[.,]\d)/g,
  /(?<=(?:\b(?:tel|telefon|telephone|phone|mobile|cell|handy|mobil|fax|whatsapp|téléphone|tél|portable|teléfono|móvil|telefono|cellulare|telefone|celular|telefoon|telefonnummer|rufnummer|number is|call me (?:at|on))|电话|手机|電話|携帯|тел|телефон)[.:：]{0,2}\s{0,2})\d(?:[ /-]?\d){5,13}(?![\w-]|[.,]\d)/giu
]

const digitsOf = (text: string): string => text.replace(/\D/g, "")

const isPhone = (text: string): boolean => {
  const { length } = digitsOf(text)
  if (/^\(?0[1-9]/.test(text)) return length >= 9 && length <= 12
  return length >= 6 && length <= 15
}

/** Returns the phone numbers. Forms that overlap are one number. */
export const phonesIn = (text: string): ReadonlyArray<Finding> => {
  const all = phoneForms
    .flatMap((form) => [...text.matchAll(form)])
    .filter(([match]) => isPhone(match))
    .map(({ 0: match, index }) => found("phone", index, match))
    .sort((a, b) => a.start - b.start || b.end - a.end)
  return all.filter(({ start }, index) => index === 0 || start >= (all[index - 1]?.end ?? 0))
}

// ---------------------------------------------------------------- IBAN

/** The lengths of IBANs, from the registry of SWIFT. */
const ibanLengths: ReadonlyMap<string, number> = new Map(
  (
    "AD24 AE23 AL28 AT20 AZ28 BA20 BE16 BG22 BH22 BI27 BR29 BY28 CH21 CR22 CY28 CZ24 DE22 DJ27 DK18 DO28 EE20 EG29 " +
    "ES24 FI18 FK18 FO18 FR27 GB22 GE22 GI23 GL18 GR27 GT28 HR21 HU28 IE22 IL23 IQ23 IS26 IT27 JO30 KW30 KZ20 LB28 " +
    "LC32 LI21 LT20 LU20 LV21 LY25 MC27 MD24 ME22 MK19 MN20 MR27 MT31 MU30 NI28 NL18 NO15 OM23 PK24 PL28 PS29 PT25 " +
    "QA29 RO24 RS22 RU33 SA24 SC31 SD18 SE24 SI19 SK24 SM27 SO23 ST25 SV28 TL23 TN24 TR26 UA29 VA22 VG24 XK20"
  )
    .split(" ")
    .map((entry) => [entry.slice(0, 2), Number(entry.slice(2))])
)

/** Returns the IBANs, written together or in groups. */
export const ibansIn = (text: string): ReadonlyArray<Finding> =>
  Array.from(text.matchAll(/(?<![\p{L}\p{N}])[a-z]{2}\d{2}(?=[ -]?[a-z0-9])/giu)).flatMap(({ 0: head, index }) => {
    const length = ibanLengths.get(head.slice(0, 2).toUpperCase())
    const end = length === undefined ? undefined : endOfGroups(text, index, length)
    if (end === undefined) return []
    const iban = text.slice(index, end)
    return hasChecksum(iban.replace(/[ -]/g, "").toUpperCase()) ? [found("iban", index, iban)] : []
  })

/** Returns where `count` letters and digits end that have at most one space or hyphen between them. */
const endOfGroups = (text: string, start: number, count: number): number | undefined => {
  let at = start
  for (let left = count; left > 0; at++) {
    const char = text.charAt(at)
    if (/[a-z0-9]/i.test(char)) left--
    else if ((char !== " " && char !== "-") || !/[a-z0-9]/i.test(text.charAt(at + 1))) return undefined
  }
  return /[\p{L}\p{N}]/u.test(text.charAt(at)) ? undefined : at
}

/** The remainder by 97 of the rearranged number, as ISO 13616 has it. */
const hasChecksum = (iban: string): boolean => {
  const digits = (iban.slice(4) + iban.slice(0, 4)).replace(/[A-Z]/g, (letter) => String(letter.charCodeAt(0) - 55))
  return [...digits].reduce((rest, digit) => (rest * 10 + Number(digit)) % 97, 0) === 1
}

// ---------------------------------------------------------------- card

/** The prefixes and lengths of networks: Visa, Mastercard, American Express, Discover, JCB, Diners Club, UnionPay. */
const networks: RegExp =
  /^(?:4(?:\d{12}|\d{15}|\d{18})|(?:5[1-5]\d{2}|222[1-9]|22[3-9]\d|2[3-6]\d{2}|27[01]\d|2720)\d{12}|3[47]\d{13}|(?:6011|65\d{2}|64[4-9]\d)\d{12,15}|35(?:2[89]|[3-8]\d)\d{12}|3(?:0[0-5]|[68]\d)\d{11}|62\d{14,17})$/

/** Returns the numbers of payment cards. */
export const cardsIn = (text: string): ReadonlyArray<Finding> =>
  Array.from(text.matchAll(/(?<![\w.,+-])(?:\d(?:[ -]?\d){12,18}|\d{4}(?:\.\d{4}){3})(?![\w-]|[.,]\d)/g))
    .filter(({ 0: match }) => networks.test(digitsOf(match)) && hasLuhnDigit(digitsOf(match)))
    .map(({ 0: match, index }) => found("card", index, match))

const hasLuhnDigit = (digits: string): boolean => {
  const sum = [...digits].reverse().reduce((sum, digit, index) => {
    const value = Number(digit) * (index % 2 === 1 ? 2 : 1)
    return sum + (value > 9 ? value - 9 : value)
  }, 0)
  return sum % 10 === 0
}
