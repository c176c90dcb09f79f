/** What must be known on every page: the server does not answer, or a part of the recorder does not work. */

import type { ComponentChildren } from "preact";
import { clock, sentence } from "../format";
import { away, info, parts, zoneOffset } from "../state";
import { alarms } from "../state/health";
import { Copyable } from "./copy";
import { Icon } from "./icons";

const COMMAND = /^(zombiescope|kill|systemctl|journalctl|kubectl|sudo) /;

export function Banners() {
  const zone = zoneOffset.value;
  if (away.value !== null)
    return (
      <Banner words={`The server has not answered since ${clock(away.value, zone)}.`}>
        {info.value && "What is shown was loaded before, and may be of an earlier selection. "}
        The page asks again every 3 s.
      </Banner>
    );
  return (
    <>
      {alarms(parts.value, zone).map(({ name, words, fix }) => (
        <Banner key={name} words={words}>
          {COMMAND.test(fix) ? <Copyable text={fix} /> : sentence(fix)}
          {fix.startsWith("zombiescope selftest") && " shows why."}
        </Banner>
      ))}
    </>
  );
}

function Banner({ words, children }: { words: string; children: ComponentChildren }) {
  return (
    <div class="banner" role="alert">
      <Icon name="warning" />
      <span>
        <strong>{words}</strong> {children}
      </span>
    </div>
  );
}
