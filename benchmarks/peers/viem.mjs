// viem's multicall: node viem.mjs BATCH_BYTES URL CONTRACTS WALLETS; 0 bytes leaves viem's own default.
import { createHash } from "node:crypto";
import { createRequire } from "node:module";
import { pathToFileURL } from "node:url";

const require = createRequire(process.env.NODE_PATH + "/");
const { createPublicClient, http, parseAbi } = await import(pathToFileURL(require.resolve("viem")).href);

const [bytes, url, list, count] = process.argv.slice(2);
const contracts = list.split(",");
const owners = Array.from({ length: Number(count) }, (_, n) =>
  "0x" + createHash("sha256").update(`wallet ${n}`).digest("hex").slice(0, 40));
const abi = parseAbi(["function balanceOf(address) view returns (uint256)"]);
const multicallAddress = "0xcA11bde05977b3631167028862bE2a173976CA11";
const client = createPublicClient({ transport: http(url, { timeout: 600_000 }) });

async function read(some) {
  const calls = contracts.flatMap((address) =>
    some.map((owner) => ({ address, abi, functionName: "balanceOf", args: [owner] })));
  const options = { contracts: calls, multicallAddress, allowFailure: true };
  if (Number(bytes)) options.batchSize = Number(bytes);
  let total = 0n;
  for (const one of await client.multicall(options)) {
    if (one.status !== "success") throw one.error;
    total += one.result;
  }
  return total;
}

await read(owners.slice(0, 10));
const cpu = process.cpuUsage();
const begun = process.hrtime.bigint();
const sum = await read(owners);
const seconds = Number(process.hrtime.bigint() - begun) / 1e9;
const used = process.cpuUsage(cpu);
console.log(JSON.stringify({
  seconds, cpu: (used.user + used.system) / 1e6, units: contracts.length * owners.length, sum: Number(sum),
  rss: process.resourceUsage().maxRSS,
}));
process.exit(0);
