// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// An ERC-20 that anybody may mint from. What it says of its decimals is chosen when it is deployed: nothing at all, or
/// any number. One that rebases changes everybody's balance at once, without a Transfer.
contract Coin {
    /// A change of ownership, as the collections have it; the id is of no use here.
    struct Move {
        address from;
        address to;
        uint256 id;
        uint256 amount;
    }

    uint256 private constant ONE = 1e18;

    string public name;
    string public symbol;
    address private immutable keeper;
    uint256 private immutable told;
    bool private immutable tells;
    uint256 private scale = ONE;
    uint256 private minted;
    address[] private holders;
    mapping(address => bool) private listed;
    mapping(address => uint256) private shares;
    mapping(address => mapping(address => uint256)) public allowance;

    event Transfer(address indexed from, address indexed to, uint256 value);
    event Approval(address indexed owner, address indexed spender, uint256 value);

    constructor(string memory name_, string memory symbol_, bool tells_, uint256 told_, address keeper_) {
        name = name_;
        symbol = symbol_;
        tells = tells_;
        told = told_;
        keeper = keeper_;
    }

    /// Wider than the standard's uint8, so that it can say what no coin may say.
    function decimals() external view returns (uint256) {
        if (!tells) {
            assembly {
                return(0, 0)
            }
        }
        return told;
    }

    function balanceOf(address holder) public view returns (uint256) {
        return _amount(shares[holder]);
    }

    function totalSupply() external view returns (uint256) {
        return _amount(minted);
    }

    /// Everybody who ever had some, and how much they have.
    function holdings() external view returns (address[] memory who, uint256[] memory amounts) {
        who = holders;
        amounts = new uint256[](who.length);
        for (uint256 i = 0; i < who.length; i++) amounts[i] = balanceOf(who[i]);
    }

    function mint(address to, uint256 amount) external {
        _move(address(0), to, amount);
    }

    function burn(address from, uint256 amount) external {
        require(msg.sender == from, "Coin: not yours to burn");
        _move(from, address(0), amount);
    }

    function approve(address spender, uint256 amount) external returns (bool) {
        allowance[msg.sender][spender] = amount;
        emit Approval(msg.sender, spender, amount);
        return true;
    }

    function transfer(address to, uint256 amount) external returns (bool) {
        require(to != address(0), "Coin: transfer to nobody");
        _move(msg.sender, to, amount);
        return true;
    }

    function transferFrom(address from, address to, uint256 amount) external returns (bool) {
        require(to != address(0), "Coin: transfer to nobody");
        require(allowance[from][msg.sender] >= amount, "Coin: not yours to move");
        allowance[from][msg.sender] -= amount;
        _move(from, to, amount);
        return true;
    }

    /// Everybody has so many hundredths of what they had; for the keeper alone.
    function rebase(uint256 percent) external {
        require(msg.sender == keeper, "Coin: keeper only");
        scale = (scale * percent) / 100;
        require(scale != 0, "Coin: nothing would be left");
        _checkTotal();
    }

    /// Amounts are what they were minted as; for the keeper alone.
    function restart() external {
        require(msg.sender == keeper, "Coin: keeper only");
        scale = ONE;
    }

    /// Many moves in one transaction, with the same events as single ones; for the keeper alone.
    function settle(Move[] calldata moves) external {
        require(msg.sender == keeper, "Coin: keeper only");
        for (uint256 i = 0; i < moves.length; i++) _move(moves[i].from, moves[i].to, moves[i].amount);
    }

    function _amount(uint256 some) private view returns (uint256) {
        return scale == ONE ? some : (some * scale) / ONE;
    }

    /// The shares for an amount, rounded up, so that whoever gets the amount has it.
    function _shares(uint256 amount) private view returns (uint256) {
        return scale == ONE ? amount : (amount * ONE + scale - 1) / scale;
    }

    /// All amounts together are a number that can be returned.
    function _checkTotal() private view {
        require(scale == ONE || minted <= type(uint256).max / scale, "Coin: more than there can be");
    }

    function _move(address from, address to, uint256 amount) private {
        uint256 some = _shares(amount);
        if (from == address(0)) {
            minted += some;
            _checkTotal();
        } else {
            uint256 had = shares[from];
            require(balanceOf(from) >= amount, "Coin: not enough");
            if (some > had) some = had;
            shares[from] = had - some;
        }
        if (to == address(0)) {
            minted -= some;
        } else {
            if (!listed[to]) {
                listed[to] = true;
                holders.push(to);
            }
            shares[to] += some;
        }
        emit Transfer(from, to, amount);
    }
}
