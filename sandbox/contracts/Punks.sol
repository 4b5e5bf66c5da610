// SPDX-License-Identifier: MIT
pragma solidity ^0.8.20;

/// A collection from before ERC-721 and ERC-165, with the outward form of CryptoPunks: a coin's Transfer without a
/// token id, and beside it the punk's own events. What it does not know it ends at an invalid opcode, as contracts of
/// that age do. Bids are left out. The keeper assigns punks, and may settle in bulk.
contract Punks {
    struct Move {
        address from;
        address to;
        uint256 id;
        uint256 amount;
    }

    struct Offer {
        bool isForSale;
        uint256 punkIndex;
        address seller;
        uint256 minValue;
        address onlySellTo;
    }

    string public standard = "CryptoPunks";
    string public name;
    string public symbol;
    uint8 public decimals = 0;
    uint256 public totalSupply;
    mapping(uint256 => address) public punkIndexToAddress;
    mapping(address => uint256) public balanceOf;
    mapping(uint256 => Offer) public punksOfferedForSale;
    mapping(address => uint256) public pendingWithdrawals;
    address internal immutable keeper;

    event Assign(address indexed to, uint256 punkIndex);
    event Transfer(address indexed from, address indexed to, uint256 value);
    event PunkTransfer(address indexed from, address indexed to, uint256 punkIndex);
    event PunkOffered(uint256 indexed punkIndex, uint256 minValue, address indexed toAddress);
    event PunkBought(
        uint256 indexed punkIndex, uint256 value, address indexed fromAddress, address indexed toAddress
    );
    event PunkNoLongerForSale(uint256 indexed punkIndex);

    constructor(string memory name_, string memory symbol_, string memory, address keeper_) {
        name = name_;
        symbol = symbol_;
        keeper = keeper_;
    }

    fallback() external {
        assembly {
            invalid()
        }
    }

    function setInitialOwner(address to, uint256 punkIndex) external {
        require(msg.sender == keeper, "Punks: keeper only");
        _assign(to, punkIndex);
    }

    function getPunk(uint256 punkIndex) external {
        _assign(msg.sender, punkIndex);
    }

    function transferPunk(address to, uint256 punkIndex) external {
        _onlyHolder(punkIndex);
        if (punksOfferedForSale[punkIndex].isForSale) _endOffer(punkIndex);
        _pass(msg.sender, to, punkIndex);
        emit PunkTransfer(msg.sender, to, punkIndex);
    }

    function offerPunkForSale(uint256 punkIndex, uint256 minSalePriceInWei) external {
        _onlyHolder(punkIndex);
        punksOfferedForSale[punkIndex] = Offer(true, punkIndex, msg.sender, minSalePriceInWei, address(0));
        emit PunkOffered(punkIndex, minSalePriceInWei, address(0));
    }

    function buyPunk(uint256 punkIndex) external payable {
        Offer memory offer = punksOfferedForSale[punkIndex];
        require(offer.isForSale && offer.seller == punkIndexToAddress[punkIndex], "Punks: not for sale");
        require(offer.onlySellTo == address(0) || offer.onlySellTo == msg.sender, "Punks: not for sale to you");
        require(msg.value >= offer.minValue, "Punks: too little");
        _pass(offer.seller, msg.sender, punkIndex);
        _endOffer(punkIndex);
        pendingWithdrawals[offer.seller] += msg.value;
        emit PunkBought(punkIndex, msg.value, offer.seller, msg.sender);
    }

    function withdraw() external {
        uint256 amount = pendingWithdrawals[msg.sender];
        pendingWithdrawals[msg.sender] = 0;
        (bool paid,) = msg.sender.call{value: amount}("");
        require(paid, "Punks: not paid");
    }

    /// Many moves in one transaction, with the events of single ones; for the keeper alone.
    function settle(Move[] calldata moves) external {
        require(msg.sender == keeper, "Punks: keeper only");
        for (uint256 i = 0; i < moves.length; i++) {
            if (moves[i].from == address(0)) {
                _assign(moves[i].to, moves[i].id);
            } else {
                require(punkIndexToAddress[moves[i].id] == moves[i].from, "Punks: not the owner");
                _pass(moves[i].from, moves[i].to, moves[i].id);
                emit PunkTransfer(moves[i].from, moves[i].to, moves[i].id);
            }
        }
    }

    function _assign(address to, uint256 punkIndex) private {
        require(punkIndexToAddress[punkIndex] == address(0), "Punks: already assigned");
        punkIndexToAddress[punkIndex] = to;
        balanceOf[to]++;
        totalSupply++;
        emit Assign(to, punkIndex);
    }

    function _onlyHolder(uint256 punkIndex) private view {
        require(punkIndexToAddress[punkIndex] == msg.sender, "Punks: not yours");
    }

    function _pass(address from, address to, uint256 punkIndex) private {
        punkIndexToAddress[punkIndex] = to;
        balanceOf[from]--;
        balanceOf[to]++;
        emit Transfer(from, to, 1);
    }

    function _endOffer(uint256 punkIndex) private {
        delete punksOfferedForSale[punkIndex];
        emit PunkNoLongerForSale(punkIndex);
    }
}
