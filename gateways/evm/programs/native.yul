// Answers `balanceOf(address)` for the chain's own coin.
object "native" {
    code {
        mstore(0, balance(calldataload(4)))
        return(0, 32)
    }
}
