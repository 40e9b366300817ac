/** Finds secrets: keys by the form that their vendor gives them, and words that are too random to be words. */

import type { Finding } from "../Detector.ts"

const secret = (start: number, end: number): Finding => ({ kind: "secret", start, end })

/** Keys with a form of their own. Repetitions are bounded, so that none reads a text twice. */
const shapes: ReadonlyArray<RegExp> = [
  // Anthropic, OpenAI, Stripe, OpenRouter, Groq, xAI, Hugging Face, Replicate, Perplexity
  /(?<![\w-])(?:(?:sk|pk|rk)[-_](?:live|test|ant|proj|or|svcacct|admin)?[-_]?[\w-]{16,200}|(?:gsk|xai|hf|r8|pplx)[-_][A-Za-z0-9]{20,200})(?![\w-])/g,
  // GitHub, GitLab, Slack, npm, PyPI, Docker, DigitalOcean, Shopify, Square, Linear, Notion, Vercel, Doppler
  /(?<![\w-])(?:gh[oprsu]_[A-Za-z0-9]{30,255}|github_pat_\w{22,255}|gl(?:pat|ptt|dt|rt)-[\w-]{20,64}|xox[abeoprs]-[\w-]{10,250}|xapp-[\w-]{20,250}|npm_[A-Za-z0-9]{36}|pypi-[\w-]{50,255}|dckr_pat_[\w-]{20,64}|do[orp]_v1_[0-9a-f]{64}|shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32}|sq0(?:atp|csp)-[\w-]{22,64}|EAAA[\w-]{60}|lin_api_\w{32,64}|(?:secret|ntn)_[A-Za-z0-9]{40,64}|dp\.pt\.[A-Za-z0-9]{40,44})(?![\w-])/g,
  // Amazon, Google, SendGrid, Mailgun, Twilio, Telegram, Discord, Azure
  /(?<![\w-])(?:(?:AKIA|ASIA|ABIA|ACCA)[A-Z2-7]{16}|AIza[\w-]{35}|GOCSPX-[\w-]{28}|ya29\.[\w-]{20,250}|SG\.[\w-]{16,32}\.[\w-]{32,64}|key-[0-9a-f]{32}|(?:AC|SK)[0-9a-f]{32}|\d{8,10}:AA[\w-]{33}|[MN][A-Za-z\d]{23,25}\.[\w-]{6}\.[\w-]{27,38})(?![\w-])/g,
  // HashiCorp, New Relic, Postman, Grafana, Atlassian, Databricks, Supabase, Sentry, 1Password, Artifactory, and others
  /(?<![\w-])(?:hv[bsr]\.[\w-]{24,250}|[A-Za-z0-9]{14}\.atlasv1\.[\w-]{60,70}|NR(?:AK|II|JS)-[\w-]{20,64}|PMAK-[0-9a-f]{24}-[0-9a-f]{34}|gl(?:sa|c)_[\w+/=]{30,400}|AT[AC]TT3[\w=-]{100,250}|dapi[0-9a-f]{32}(?:-\d)?|sb[ps]_[\w-]{20,64}|sntry[us]_[\w+/=]{50,300}|ops_eyJ[\w+/=]{100,2000}|AKCp[A-Za-z0-9]{69}|whsec_[\w+/=]{24,64}|LTAI[A-Za-z0-9]{20}|pscale_(?:tkn|oauth|pw)_[\w.=-]{32,64}|rubygems_[0-9a-f]{48}|xkeysib-[0-9a-f]{64}-\w{16}|dt0c01\.[A-Z0-9]{24}\.[A-Z0-9]{64}|pul-[0-9a-f]{40}|fo1_[\w-]{43}|[\w~.]{3}\dQ~[\w~.-]{31,34})(?![\w-])/g,
  /(?<=AccountKey=)[A-Za-z0-9+/]{86}==/g,
  /https:\/\/hooks\.slack\.com\/services\/[A-Z0-9]{8,12}\/[A-Z0-9]{8,12}\/[A-Za-z0-9]{20,32}/g,
  // JSON Web Tokens, signed or encrypted, and bearer tokens
  /(?<![\w-])eyJ[\w-]{8,2000}(?:\.[\w-]{8,4000}){1,4}\.?/g,
  /(?<=\bBearer )[\w.~+/-]{20,2000}={0,2}/gi,
  /-----BEGIN (?:[A-Z0-9]{1,12} ){0,3}PRIVATE KEY(?: BLOCK)?-----(?:(?!-----END)[^]){0,16384}(?:-----END [A-Z0-9 ]{1,40}-----)?/g,
  /(?<![\w-])(?:AGE-SECRET-KEY-1[A-Z0-9]{58})(?![\w-])/g,
  // The password in a URL
  /(?<=\b[a-z][a-z0-9+.-]{1,20}:\/\/[^\s/:@"'<>]{0,64}:)(?!\$|<|\{|\*|x{3,}|password@)[^\s/@"'<>]{3,128}(?=@[\w[])/gi
]

const assigned =
  /(?<=(?:api[-_ ]?key|access[-_ ]?key|secret(?:[-_ ]?(?:access[-_ ]?)?key)?|secret[-_ ]?key[-_ ]?base|client[-_ ]?secret|auth[-_ ]?token|access[-_ ]?token|refresh[-_ ]?token|token|private[-_ ]?key|passw(?:or)?d|passwort|pwd|passphrase|mot de passe|contraseña|密码|パスワード)["'`]?\s{0,3}(?:[:=：]|is|ist|est|es|=>)\s{0,3}["'`]?)[^\s"'`,;<>{}()]{6,256}/giu

/** Certificates and public keys. */
const publicBlock =
  /-----BEGIN (?:[A-Z0-9]{1,16} ){0,3}(?:CERTIFICATE(?: REQUEST)?|PUBLIC KEY)-----(?:(?!-----END)[^]){0,16384}-----END/g

const notSecret =
  /^(?:\$|%|\*+$|x+$|\.+$|process\.|os\.|env\.|config\.|your|my[-_]|example|change|placeholder|redacted|none|null|undefined|true|false|required|string|optional|not|test$|todo|hidden|stored|wrong|invalid|expired|missing|incorrect|\[|\u2026)/i

/** Returns the secrets in a text. */
export const secretsIn = (text: string): ReadonlyArray<Finding> => {
  const byShape = shapes.flatMap((shape) => [...text.matchAll(shape)])
  const byName = [...text.matchAll(assigned)].filter(([value]) => isPassword(value))
  const publicBlocks = [...text.matchAll(publicBlock)]
  const isPublic = (place: number) =>
    publicBlocks.some(({ 0: block, index }) => place >= index && place < index + block.length)
  const byChance = [...text.matchAll(/(?<![\w+/=.@:-])[A-Za-z0-9+/_=-]{24,512}(?![\w+/@-])/g)].filter(
    ({ 0: word, index }) =>
      isRandom(word) && !isHarmless(text.slice(Math.max(0, index - 24), index), word) && !isPublic(index)
  )
  const all = [...byShape, ...byName, ...byChance]
    .map(({ 0: match, index }) => secret(index, index + match.length))
    .sort((a, b) => a.start - b.start || b.end - a.end)
  const kept: Array<Finding> = []
  for (const finding of all) if (finding.start >= (kept.at(-1)?.end ?? 0)) kept.push(finding)
  return kept
}

/** Whether an assigned value is one, and neither a placeholder nor a plain word of a sentence. */
const isPassword = (value: string): boolean => {
  if (notSecret.test(value) || /^[\p{L}.!?…]+$/u.test(value)) return false
  const classes = [/[a-z]/, /[A-Z]/, /\d/, /[^A-Za-z0-9]/].filter((characters) => characters.test(value)).length
  return classes >= 2 && !/^[a-z][\w]*\.[\w.]+$/i.test(value) && (/\d/.test(value) || classes >= 3)
}

/** Whether letters of both cases and digits stand as close as in random text: four bits for each character. */
const isRandom = (word: string): boolean =>
  [/[a-z]/, /[A-Z]/, /\d/].every((characters) => characters.test(word)) &&
  (word.match(/\d/g)?.length ?? 0) >= 3 &&
  bitsOf(word) >= 4 &&
  !/[/_-]?[a-z]{7,}[/_-]/.test(word) &&
  (word.match(/[a-z][A-Z]|[A-Z][a-z]|\d[A-Za-z]|[A-Za-z]\d/g)?.length ?? 0) >= word.length / 4

/** The entropy of the characters of a word, in bits. */
const bitsOf = (word: string): number => {
  const counts = new Map<string, number>()
  for (const char of word) counts.set(char, (counts.get(char) ?? 0) + 1)
  return [...counts.values()].reduce((bits, count) => bits - (count / word.length) * Math.log2(count / word.length), 0)
}

/** Digests, data URLs, public keys and ids are as random as secrets. */
const isHarmless = (before: string, word: string): boolean =>
  /(?:base64,|sha(?:1|256|384|512)[-:=]?|integrity["':= ]{1,4}|etag["':= ]{1,5}|ssh-(?:rsa|ed25519) |\/)$/i.test(
    before
  ) || /^(?:sha(?:256|384|512)-|AAAA[BC]3NzaC)/.test(word)
